#!/usr/bin/env python3
"""completion.py SOURCE BUILD: what the shells offer behind a half-typed command, in bash, zsh and fish."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

SOURCE, BUILD = (Path(a).resolve() for a in sys.argv[1:3])
ENV = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "TERM": "dumb", "HOME": "/nonexistent"}
FILES = SOURCE / "packaging" / "completions"

#: line as typed, words that must be offered, words that must not
LINES = [
    ("sluice ", {"jobs", "why", "store", "sim", "help"}, {"--help"}),
    ("sluice un", {"undrain"}, {"jobs"}),
    ("sluice help rep", {"replay"}, {"jobs"}),
    ("sluice store ", {"check", "migrate", "export", "import", "usage"}, {"jobs"}),
    ("sluice store ex", {"export"}, {"check"}),
    ("sluice jobs --out", {"--output"}, {"--all"}),
    ("sluice jobs --", {"--output", "--all", "--namespace", "--server"}, {"--html"}),
    ("sluice jobs -o ", {"table", "json"}, {"--output"}),
    ("sluice jobs -n team --output j", {"json"}, {"table"}),
    ("sluice generate --format s", {"swf"}, {"jsonl"}),
    ("sluiced --print-", {"--print-config", "--print-schema", "--print-keys"}, {"--store"}),
    ("sluice-query --match-", {"--match-policy", "--match-format", "--match-subsystems"}, {"--help"}),
]


def run(*command, text=None):
    done = subprocess.run(command, env=ENV, input=text, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def file_of(shell, name):
    ours = {"bash": "sluice.bash", "zsh": "_sluice", "fish": "sluice.fish"}
    made = {"bash": name, "zsh": "_" + name, "fish": name + ".fish"}
    return FILES / ours[shell] if name == "sluice" else BUILD / "packaging" / made[shell]


def bash(line):
    words = line.split(" ")
    name = words[0]
    quoted = " ".join(f"'{w}'" for w in words)
    script = f"source {file_of('bash', name)}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
    return run("bash", "--norc", "-c", script + f"_{name.replace('-', '_')}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")


def fish(line):
    return run("fish", "--no-config", "-c", f"source {file_of('fish', line.split(' ')[0])}; complete -C '{line}'")


def zsh(line):
    """The functions zsh would show the candidates with print them instead."""
    words = " ".join(f"'{w}'" for w in line.split(" "))
    script = f"""
_describe() {{ print -rl -- ${{${{(P)4}}%%:*}} }}
_files() {{ }}
_arguments() {{ local w; for w in "$@"; do w=${{w%%[=\\[+]*}}; [[ $w == $words[CURRENT]* ]] && print -r -- $w; done }}
words=({words}); CURRENT=$#words
complete_it() {{ {file_of('zsh', line.split(' ')[0]).read_text()} }}
complete_it
"""
    return run("zsh", "-f", "-c", script)


for shell, offers in {"bash": bash, "zsh": zsh, "fish": fish}.items():
    if not shutil.which(shell):
        ok(not os.environ.get("CI"), f"{shell}: # SKIP not installed")
        continue
    for line, wanted, unwanted in LINES:
        text = offers(line)
        words = set(text.replace("\t", " ").replace("\r", " ").split())
        typed = set(line.split())
        missing, extra = (wanted - typed) - words, (unwanted - typed) & words
        ok(not missing and not extra, f"{shell}: {line!r}", f"missing {missing}, extra {extra}\n{text}")

text = run("bash", "--norc", "-c", f"source {file_of('bash', 'sluice')}; COMP_WORDS=(sluice jobs --output = j); COMP_CWORD=4; _sluice; echo \"${{COMPREPLY[@]}}\"")
ok(text == "json\n", "bash: a value behind = is one word", text)
text = run(FILES / "kubectl_complete-sluice", "jobs", "-o", "")
ok(text == "table\njson\n:4\n", "kubectl: candidates, and no files", text)
text = run("sluice", "--complete", "sim", "--html", "")
ok(text == "", "sluice --complete: nothing where a file is wanted", text)
text = run("sluice", "--complete", "nothing", "")
ok(text == "", "sluice --complete: nothing behind an unknown command", text)
finish()
