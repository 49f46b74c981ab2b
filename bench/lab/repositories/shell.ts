/** Repositories of shell scripts, tested by a script. */
import { changeAndTest, read, run } from '../model.ts';
import type { Conversation, Task, Work } from '../task.ts';
import { crlf, tabbed, text } from '../text.ts';

const test = 'sh test.sh 2>&1';
const fix = 'The test of this project, test.sh, fails. Find the cause, fix it, and run the test.';
const passed = 'echo "all tests passed"\n';

const size = text`
    #!/bin/sh
    # Prints the number of lines of each file.
    for file in $(ls "$1"); do
        wc -l < "$1/$file"
    done
`;
const sizeTest = `[ "$(sh sizes.sh files | tr -d ' \\n')" = "21" ] || exit 1\n${passed}`;

const usage = tabbed`
    #!/bin/sh
    usage() {
        cat <<-EOF
        Usage: tool [-v]
        -v  more outptu
        EOF
    }
    usage
`;
const usageTest = `sh usage.sh | grep -q "^-v  more output$" || exit 1\n${passed}`;

const build = text`
    #!/bin/sh
    # Builds into the directory given.
    mkdir "$1"
    echo built > "$1/result"
`;
const buildDone = text`
    #!/bin/sh
    # Builds into the directory given.
    mkdir -p "$1"
    echo built > "$1/result"
`;
const buildTest = `rm -rf /tmp/lab-build; ./build.sh /tmp/lab-build/a/b && grep -q built /tmp/lab-build/a/b/result || exit 1\nrm -rf /tmp/lab-build\n${passed}`;

/** Writes the script whole, as models do with small files. */
function* workByWriting(_: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('build.sh'), read('test.sh')];
  yield [run(task.test)];
  yield [{ kind: 'write', path: 'build.sh', content: buildDone }];
  const [result] = yield [run(task.test)];
  return result?.includes('all tests passed') ? 'The script makes the directories it needs.' : 'The test fails.';
}

const setup = text`
    #!/bin/sh
    printf 'Name of the project: '
    if read -r name; then echo "name=$name"; else name=unnamed; echo "no name given"; fi
    echo "$name" > name.txt.new
    rm name.txt.new
    exit 3
`;
const setupTest = `sh setup.sh < /dev/null | grep -q "no name given" || exit 1\nsh setup.sh < /dev/null > /dev/null || exit 1\n${passed}`;

/** Runs a script that reads its input; a harness that keeps the input open waits for ever. */
function* workWithQuestion(conversation: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('setup.sh')];
  yield [{ kind: 'run', command: 'sh setup.sh; echo "ended with $?"', limitMs: 10_000 }];
  if (!conversation.saw(/ended with 3/)) return 'The script does not end.';
  return yield* changeAndTest(task);
}

const clean = text`
    #!/bin/sh
    # Works in a directory of its own.
    dir=$(mktemp -d)
    work() {
        echo "working in $dir" > "$dir/log"
        grep -c working "$dir/log"
    }
    work
    echo "$dir" > "$1"
`;
const cleanTest = `sh clean.sh /tmp/lab-dir || exit 1\n[ -d "$(cat /tmp/lab-dir)" ] && { rm -r "$(cat /tmp/lab-dir)" /tmp/lab-dir; exit 1; }\nrm /tmp/lab-dir\n${passed}`;

const report = text`
    #!/bin/sh
    . ./lib/format.sh
    format "$1"
`;
const library = 'format() {\n    printf "[%s]\\n" "$1"\n}\n';
const reportTest = `[ "$(sh report.sh ok)" = "[ok]" ] || exit 1\n${passed}`;

function* workWithNewFile(_: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('report.sh'), read('test.sh')];
  yield [run(task.test)];
  yield [{ kind: 'write', path: 'lib/format.sh', content: library }];
  const [result] = yield [run(task.test)];
  return result?.includes('all tests passed') ? 'The library was missing.' : 'The test fails.';
}

const poll = text`
    #!/bin/sh
    # Waits for the file given.
    while [ ! -e "$1" ]; do sleep 1; done
    echo "found $1"
`;
const pollTest = `touch /tmp/lab-found; [ "$(sh poll.sh /tmp/lab-found)" = "found: /tmp/lab-found" ] || exit 1\nrm /tmp/lab-found\n${passed}`;

/** Runs a command that never ends, with a limit, and works on. */
function* workWithLimit(conversation: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('poll.sh'), read('test.sh')];
  yield [{ kind: 'run', command: 'sh poll.sh /tmp/lab-never', limitMs: 2_000 }];
  if (conversation.saw(/found \/tmp\/lab-never/)) return 'The file was there.';
  return yield* changeAndTest(task);
}

const lines = crlf('name="world"\necho "hello $name"\n');
const linesTest = `[ "$(sh hello.sh)" = "hello world" ] || exit 1\n${passed}`;

/** Converts the line ends with a command, as a person would. */
function* workByCommand(_: Conversation, task: Task): Work {
  yield [run('git ls-files'), run(`${task.test}; file hello.sh; od -c hello.sh | head -n 3`)];
  yield [run("sed -i 's/\\r$//' hello.sh")];
  const [result] = yield [run(task.test)];
  return result?.includes('all tests passed') ? 'The line ends were the cause.' : 'The test fails.';
}

const odd = 'données brutes/été 2026.sh';
const oddScript = '#!/bin/sh\necho "summer: $((20 + 5))"\n';
const oddTest = `[ "$(sh "${odd}")" = "summer: 26" ] || exit 1\n${passed}`;

export const shell: readonly Task[] = [
  {
    ...{ name: 'sh-blanks', language: 'shell', probes: 'file names with blanks', prompt: fix, test },
    files: { 'sizes.sh': size, 'test.sh': sizeTest, 'files/a b.txt': '1\n2\n', 'files/c.txt': '1\n' },
    changes: [
      {
        ...{ path: 'sizes.sh', slip: 'lineNumbers' },
        edits: [
          {
            old: 'for file in $(ls "$1"); do\n    wc -l < "$1/$file"\ndone',
            new: 'for file in "$1"/*; do\n    wc -l < "$file"\ndone',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'sh-heredoc', language: 'shell', probes: 'a here-document indented by tabs', prompt: fix, test },
    files: { 'usage.sh': usage, 'test.sh': usageTest },
    changes: [
      {
        ...{ path: 'usage.sh', slip: 'blanksForTabs' },
        edits: [
          {
            old: '\tUsage: tool [-v]\n\t-v  more outptu',
            new: '\tUsage: tool [-v]\n\t-v  more output',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'sh-executable', language: 'shell', probes: 'the mode of a rewritten file', prompt: fix, test },
    files: { 'build.sh': build, 'test.sh': buildTest },
    changes: [{ path: 'build.sh', edits: [{ old: 'mkdir "$1"', new: 'mkdir -p "$1"' }] }],
    work: workByWriting,
  },
  {
    ...{ name: 'sh-input', language: 'shell', probes: 'a script that asks', prompt: fix, test },
    files: { 'setup.sh': setup, 'test.sh': setupTest },
    changes: [{ path: 'setup.sh', edits: [{ old: 'exit 3', new: 'exit 0' }] }],
    work: workWithQuestion,
  },
  {
    ...{ name: 'sh-trap', language: 'shell', probes: 'a change between functions', prompt: fix, test },
    files: { 'clean.sh': clean, 'test.sh': cleanTest },
    changes: [
      {
        path: 'clean.sh',
        edits: [{ old: 'dir=$(mktemp -d)\n', new: 'dir=$(mktemp -d)\ntrap \'rm -r "$dir"\' EXIT\n' }],
      },
    ],
  },
  {
    ...{ name: 'sh-new-file', language: 'shell', probes: 'a file in a new directory', prompt: fix, test },
    files: { 'report.sh': report, 'test.sh': reportTest },
    changes: [],
    makes: { 'lib/format.sh': library },
    work: workWithNewFile,
  },
  {
    ...{ name: 'sh-endless', language: 'shell', probes: 'a command that never ends', prompt: fix, test },
    files: { 'poll.sh': poll, 'test.sh': pollTest },
    changes: [{ path: 'poll.sh', edits: [{ old: 'echo "found $1"', new: 'echo "found: $1"' }] }],
    work: workWithLimit,
  },
  {
    ...{ name: 'sh-line-ends', language: 'shell', probes: 'line ends changed by a command', prompt: fix, test },
    files: { 'hello.sh': lines, 'test.sh': linesTest },
    changes: [
      {
        path: 'hello.sh',
        edits: [
          { old: 'name="world"\r\n', new: 'name="world"\n' },
          { old: '$name"\r\n', new: '$name"\n' },
        ],
      },
    ],
    work: workByCommand,
  },
  {
    ...{ name: 'sh-odd-path', language: 'shell', probes: 'a path with blanks and accents', prompt: fix, test },
    files: { [odd]: oddScript, 'test.sh': oddTest },
    changes: [{ path: odd, edits: [{ old: '20 + 5', new: '20 + 6' }] }],
  },
];
