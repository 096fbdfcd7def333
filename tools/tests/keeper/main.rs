//! A keeper for the tests of this crate; programs have it as a subcommand.

fn main() -> std::io::Result<()> {
    tools::keeper::keep()
}
