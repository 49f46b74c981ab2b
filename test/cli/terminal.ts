/** Program at a real terminal: the test waits for output and types answers. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import type { Test } from 'tap';

export interface Terminal {
  /** Waits until the screen has shown a text since the last answer. @throws when the program ends before */
  readonly shows: (text: string) => Promise<void>;
  readonly type: (keys: string) => void;
  /** Waits for a text, then types. */
  readonly answer: (question: string, keys: string) => Promise<void>;
  /** Everything that was ever shown, with its control sequences. */
  readonly screen: () => string;
  readonly ended: Promise<{ readonly code: number | null }>;
}

export const keys = { enter: '\r', down: '\u001b[B', ctrlC: '\u0003' } as const;

/** Whether there is `script` of util-linux, which makes the terminal. */
export const hasTerminals = (): boolean => spawnSync('script', ['--version']).status === 0;

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Starts a program at a terminal of 200 columns. It is killed with the test. */
export function atTerminal(
  t: Test,
  argv: readonly string[],
  { env, cwd }: { readonly env: Readonly<Record<string, string>>; readonly cwd: string },
): Terminal {
  const line = `stty cols 200 rows 60; exec ${argv.map(quoted).join(' ')}`;
  const child: ChildProcess = spawn(
    'script',
    ['--quiet', '--flush', '--return', '--echo', 'never', '--command', line, '/dev/null'],
    {
      cwd,
      env: { ...env, TERM: 'xterm', SHELL: '/bin/sh' },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  t.teardown(() => child.kill('SIGKILL'));
  let [screen, seen] = ['', 0];
  let hasEnded = false;
  const watchers = new Set<() => void>();
  const wake = () => {
    for (const watcher of [...watchers]) watcher();
  };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
    wake();
  });
  const ended = new Promise<{ code: number | null }>((resolve) =>
    child.once('close', (code) => {
      hasEnded = true;
      wake();
      resolve({ code });
    }),
  );
  const shows = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = () => {
        const at = plain(screen).indexOf(text, seen);
        if (at < 0 && !hasEnded) return;
        watchers.delete(look);
        if (at < 0) return reject(new Error(`It ended without showing ${text}:\n${plain(screen).slice(seen)}`));
        seen = at + text.length;
        resolve();
      };
      watchers.add(look);
      look();
    });
  const type = (text: string): void => {
    child.stdin?.write(text);
  };
  return {
    shows,
    type,
    async answer(question, text) {
      await shows(question);
      type(text);
    },
    screen: () => screen,
    ended,
  };
}

/** Text without control sequences. */
export const plain = (text: string): string => stripVTControlCharacters(text);
