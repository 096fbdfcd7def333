//! Harmless oddities of honest agents: none of them may raise an alarm.

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use crate::support::{Broken, honest, run};

/// An agent that leaves SIGINT to Python was accused of its traceback, although it died of the signal, as the contract
/// lets it.
#[test]
fn an_agent_that_dies_of_a_signal_with_a_traceback_is_green() {
    let agent = Broken::new("agent.py", "        signal.signal(number, signal.SIG_DFL)\n", "        pass\n");
    run(&agent.command(), "external").assert().code(0).stdout(contains("Held"));
}

/// An agent that let a failed write through as a traceback was called a panic in each scenario.
#[test]
fn an_agent_that_stops_over_a_fault_with_a_traceback_is_green() {
    let agent = Broken::new(
        "agent.py",
        "    except (DurabilityLost, OSError) as error:\n",
        "    except DurabilityLost as error:\n",
    );
    agent.also("agent.py", "    except Exception as error:", "    except ZeroDivisionError as error:");
    agent.also("agent.py", "    except sqlite3.Error as error:", "    except ZeroDivisionError as error:");
    let told = run(&agent.command(), "faults").args(["--json"]).assert().code(0);
    let text = String::from_utf8_lossy(&told.get_output().stdout).into_owned();
    assert!(text.contains("stopped with a message, nothing promised"), "{text}");
}

/// A log, a pid file, a socket and a pipe in the working folder were taken for effects, and the pipe was waited for.
#[test]
fn an_agent_that_keeps_a_log_a_socket_and_a_pipe_in_its_folder_is_green() {
    let agent = Broken::new(
        "agent.py",
        "    settings = read_settings()\n",
        concat!(
            "    settings = read_settings()\n",
            "    import logging, socket\n",
            "    logging.basicConfig(filename='agent.log')\n",
            "    try:\n        raise OSError('handled')\n    except OSError:\n        logging.exception('%s', time.time())\n",
            "    pathlib.Path('agent.pid').write_text(str(os.getpid()))\n",
            "    os.path.exists('pipe') or os.mkfifo('pipe')\n",
            "    os.path.exists('agent.sock') and os.unlink('agent.sock')\n",
            "    socket.socket(socket.AF_UNIX).bind('agent.sock')\n",
        ),
    );
    run(&agent.command(), "points,rerun,drift,exhaust,power")
        .timeout(std::time::Duration::from_secs(300))
        .assert()
        .code(0)
        .stdout(contains("Held"));
}

/// What is in the artifacts folder is judged, unless the user says that it is not.
#[test]
fn a_stray_artifact_alarms_unless_it_is_ignored() {
    let agent = Broken::new(
        "agent.py",
        "    settings = read_settings()\n",
        concat!(
            "    settings = read_settings()\n",
            "    os.makedirs(settings.artifacts, exist_ok=True)\n",
            "    open(os.path.join(settings.artifacts, 'runs.bak'), 'a').write('one more run\\n')\n",
        ),
    );
    run(&agent.command(), "rerun").assert().code(1).stdout(contains("runs.bak").or(contains("the files have changed")));
    run(&agent.command(), "rerun").args(["--ignore", "artifacts/*.bak"]).assert().code(0);
}

/// An agent that keeps the bare contract was called silent in `control`, as nobody had told it which of its tools have
/// effects.
#[test]
fn the_bare_contract_is_green_in_control_and_what_is_missing_is_not_applicable() {
    let folder = tempfile::tempdir().expect("dir");
    let plan = folder.path().join("plan.json");
    std::fs::write(&plan, r#"{"goal": "g", "steps": [{"tool": "echo", "input": {"value": 1}}]}"#).expect("written");
    run(&honest(), "control,rerun")
        .args(["--json", "--plan", plan.to_str().expect("a path")])
        .assert()
        .code(0)
        .stdout(contains("control to plan, because the agent has no `tools --json`"));
}

/// What was stored through a mapping was not followed, and an agent that syncs its mapping was accused of a file that
/// no power cut could have emptied.
#[test]
fn a_mapping_is_followed_where_it_is_synced_and_is_called_blind_where_it_is_not() {
    let write =
        "            file.write(content)\n            file.flush()\n            fsync(file.fileno(), temporary)\n";
    let mapped = "            import mmap\n            file.truncate(len(content))\n            with mmap.mmap(file.fileno(), \
                  len(content)) as memory:\n                memory[:] = content\n                memory.flush()\n";
    let agent = Broken::new("tools.py", write, mapped);
    agent.also("tools.py", "open(temporary, \"xb\")", "open(temporary, \"x+b\")");
    run(&agent.command(), "power").assert().code(0).stdout(contains("blind here").not());
    agent.also("tools.py", "                memory.flush()\n", "");
    run(&agent.command(), "power").assert().stdout(contains("not reached: blind here, `artifacts/"));
}
