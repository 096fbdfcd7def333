//! The journal in words.
