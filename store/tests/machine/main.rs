//! The pure core: tables of commands and events by state, and commands by somebody who does not know the state. What
//! processes, kills and locks make of it is explored by the model, `store/examples/model`.

mod agreement;
mod decisions;
mod effects;
mod evolution;
mod waiting;
