/** Commands that real shells run for a script: each is recorded instead of run. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Programs that exist: their names are those of the words that the scripts of the tests use. */
const names = ['ls', 'cat', 'npm', 'git', 'rm', 'touch'];

export interface Recorder {
  /** Words of every command that the shell runs, in no certain order. */
  readonly run: (shell: 'bash' | 'dash', script: string) => readonly (readonly string[])[];
  readonly close: () => void;
}

/** A directory whose programs write down how they are called. */
export function recorder(): Recorder {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-shells-'));
  // Scripts run where no relative path leads to a program: `./ls` would be recorded as `ls`.
  const [calls, programs, work] = [join(directory, 'calls'), join(directory, 'programs'), join(directory, 'work')];
  for (const made of [programs, work]) mkdirSync(made);
  for (const name of names) {
    const file = join(programs, name);
    // A file for each process: those of a pipeline write at once. Words end with NUL, which no word contains.
    writeFileSync(file, `#!/bin/sh\nprintf '%s\\0' ${name} "$@" >"${calls}/$$"\n`);
    chmodSync(file, 0o755);
  }
  return {
    run(shell, script) {
      rmSync(calls, { recursive: true, force: true });
      mkdirSync(calls);
      try {
        execFileSync(`/bin/${shell}`, ['-c', `${script}\nwait`], {
          cwd: work,
          env: { PATH: programs, HOME: work },
          stdio: 'ignore',
          timeout: 60_000,
        });
      } catch {
        // A script may fail; the commands before the failure count.
      }
      return readdirSync(calls).map((file) => readFileSync(join(calls, file), 'utf8').split('\0').slice(0, -1));
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  };
}
