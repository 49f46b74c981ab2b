/** Docker Compose 1.29, whose modules take nine tenths of the processor time of a run: one process loads them for several runs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import { type Ran, type RunSettings, run } from '../run.ts';
import { composeV1 } from '../tools.ts';

export type RunCompose = (args: readonly string[], settings: RunSettings) => Promise<Ran>;

/** Each line of its input is a run: a fork, whose working directory, environment and streams are its own, runs the program. */
const source = `
import json, os, runpy, sys, tempfile
import compose.cli.main

program = sys.argv[1]
for line in sys.stdin:
    asked = json.loads(line)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            for stream, number in ((open(os.devnull), 0), (output, 1), (errors, 2)):
                os.dup2(stream.fileno(), number)
            os.chdir(asked["cwd"])
            os.environ.clear()
            os.environ.update(asked["env"])
            sys.argv = [program, *asked["args"]]
            runpy.run_path(program, run_name="__main__")
            sys.exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode())
        print(json.dumps({"exitCode": code if code >= 0 else None, "stdout": texts[0], "stderr": texts[1]}), flush=True)
`;

/** Starts the process, which ends with the test. A program that is not a Python script is started for each run. */
export async function startComposeV1(t: Test): Promise<RunCompose> {
  const program = await composeV1();
  const interpreter = /^#!\s*(\S*python\S*)\s*$/m.exec(readFileSync(program, 'latin1').split('\n', 1)[0] ?? '')?.[1];
  if (interpreter === undefined) return (args, settings) => run(program, args, settings);
  const server = spawn(interpreter, ['-c', source, program], {
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const ended = endOf(server);
  t.teardown(() => {
    server.stdin.end();
    return ended;
  });
  let last: Promise<unknown> = Promise.resolve();
  return (args, { cwd, env }) => {
    const answer = last.then(async () => {
      server.stdin.write(`${JSON.stringify({ args, cwd, env })}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error('The process of Compose 1.29 has ended');
      return JSON.parse(value) as Ran;
    });
    last = answer.catch(() => {});
    return answer;
  };
}

const endOf = (server: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    server.once('exit', () => resolve()).once('error', () => resolve());
  });
