//! A scripted client of `kwab mcp`: writes requests to the real binary's stdin and reads its lines.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest that an answer may take in a test.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server and its one client.
pub(crate) struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    kept: HashMap<u64, Value>,
}

impl Client {
    /// Starts the server in `folder` without a word to it.
    pub(crate) fn silent(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
        command
            .arg("mcp")
            .args(arguments)
            .current_dir(folder)
            .env("HOME", folder)
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_DATA_HOME");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next: 1, kept: HashMap::new() }
    }

    /// Starts the server and shakes hands.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut client = Self::silent(folder, arguments);
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                           "clientInfo": {"name": "test", "version": "1"}});
        let told = client.ask("initialize", hello);
        assert_eq!(told["result"]["serverInfo"]["name"], "kwab", "{told}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    /// Writes a line as it is.
    pub(crate) fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("the server reads");
    }

    /// Closes the server's stdin.
    pub(crate) fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Sends a request and gives its id.
    pub(crate) fn send(&mut self, method: &str, parameters: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}).to_string());
        id
    }

    /// The next line; every line must be a message of the protocol.
    pub(crate) fn line(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert_eq!(value["jsonrpc"], "2.0", "{line}");
                Some(value)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no answer"),
        }
    }

    /// The answer to a request, whatever comes before it.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.kept.remove(&id) {
                return answer;
            }
            let line = self.line().expect("the server answers");
            let got = line["id"].as_u64().unwrap_or_else(|| panic!("no id: {line}"));
            self.kept.insert(got, line);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        self.answer(id)
    }

    /// What a tool answers: the protocol's result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        answer.get("result").cloned().unwrap_or_else(|| panic!("{answer}"))
    }

    /// The value of a tool's answer; it must be the same as its text, and no error.
    pub(crate) fn value(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON");
        assert_eq!(text, result["structuredContent"]);
        text
    }

    /// The words with which a tool refuses.
    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().expect("words").to_owned()
    }

    /// Waits for the end of the server.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.close();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server does not end");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
