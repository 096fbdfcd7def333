//! The address of a server.

use std::fmt;
use std::str::FromStr;

use ureq::http::Uri;

/// Where a server on plain HTTP is: a host, a port if it is not 80, and the path that its interface lies below, if any.
/// What it is made from is understood as a whole, or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// The address of something below it.
    #[must_use]
    pub fn join(&self, path: &str) -> String {
        format!("{}/{path}", self.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Address {
    /// Why it is refused, to go on from "…=…: ".
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error: ureq::http::uri::InvalidUri| error.to_string())?;
        // The library drops a fragment without a word, and takes a port that is not one for none.
        if text.contains('#') {
            return Err("it has a fragment".to_owned());
        }
        if uri.scheme_str() != Some("http") {
            return Err("it does not begin with http://".to_owned());
        }
        let authority = uri.authority().ok_or("it names no host")?;
        let host = authority.host();
        if authority.as_str().contains('@') {
            return Err("it has a user name, which would not be used".to_owned());
        }
        if host.is_empty() {
            return Err("it names no host".to_owned());
        }
        let port = authority.as_str().strip_prefix(host).unwrap_or_default();
        let is_port = |port: &str| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        };
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return Err(format!("its port `{}` is not one of 1 to 65535", port.trim_start_matches(':')));
        }
        if uri.query().is_some() {
            return Err("it has a query".to_owned());
        }
        let path = uri.path().trim_end_matches('/');
        if path.split('/').skip(1).any(|part| matches!(part, "" | "." | ".." | "api" | "v1")) {
            return Err(format!(
                "its path {path} is not where a server's interface begins: leave out /api and the rest"
            ));
        }
        Ok(Self(format!("http://{authority}{path}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("http://127.0.0.1:11434", "http://127.0.0.1:11434/api/generate")]
    #[case("http://127.0.0.1:11434/", "http://127.0.0.1:11434/api/generate")]
    #[case("http://localhost", "http://localhost/api/generate")]
    #[case("http://[::1]:80", "http://[::1]:80/api/generate")]
    #[case("http://[::1]", "http://[::1]/api/generate")]
    #[case("http://model-server.example:65535", "http://model-server.example:65535/api/generate")]
    #[case("http://gateway/models/ollama/", "http://gateway/models/ollama/api/generate")]
    fn an_address_is_understood(#[case] text: &str, #[case] joined: &str) {
        let address: Address = text.parse().unwrap();
        assert_eq!(address.join("api/generate"), joined);
    }

    /// A port that is not one was taken for none: the notes went to port 80, to whoever listens there, and the task was
    /// done.
    #[rstest]
    #[case("http://127.0.0.1:114344", "port `114344`")]
    #[case("http://127.0.0.1:11434x", "port `11434x`")]
    #[case("http://127.0.0.1:", "port ``")]
    #[case("http://127.0.0.1:/", "port ``")]
    #[case("http://127.0.0.1:0", "port `0`")]
    #[case("http://127.0.0.1:+80", "port `+80`")]
    #[case("http://[::1]:", "port ``")]
    #[case("http://[::1]x", "")]
    #[case("http://host?model=x", "a query")]
    #[case("http://host/?", "a query")]
    #[case("http://host/#top", "a fragment")]
    #[case("http://host#", "a fragment")]
    #[case("http://me@host", "a user name")]
    #[case("http://me:secret@host:80", "a user name")]
    #[case("http://host/api/generate", "its path /api/generate")]
    #[case("http://host/v1", "its path /v1")]
    #[case("http://host//x", "its path //x")]
    #[case("http://host/../x", "its path /../x")]
    #[case("https://host", "http://")]
    #[case("ftp://host", "http://")]
    #[case("host:11434", "http://")]
    #[case("localhost", "http://")]
    #[case("/api", "http://")]
    #[case("http://", "")]
    #[case("http://:80", "host")]
    #[case("http:///x", "")]
    #[case(" http://host", "")]
    #[case("http://a b", "")]
    #[case("", "")]
    fn what_is_not_an_address_is_refused_with_a_reason(#[case] text: &str, #[case] says: &str) {
        let why = text.parse::<Address>().unwrap_err();
        assert!(why.contains(says) && !why.is_empty(), "{text}: {why}");
    }
}
