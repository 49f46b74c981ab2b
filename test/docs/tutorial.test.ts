/** Follows docs/tutorial.md as a reader would: runs each of its commands in a new home and compares each output. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { makePlace, type Place } from '../e2e/harness.ts';
import { eventually } from '../hub/harness.ts';
import { unusedPort } from '../ports.ts';
import { type Block, blocksOf, missingLine } from './tutorial-page.ts';

t.setTimeout(600_000);

const page = readFileSync(join(root, 'docs/tutorial.md'), 'utf8');

/** Replacements of parts of commands, each with its reason. Everything else runs as printed. */
const replacementsFor = (port: number) =>
  [
    // The checkout under test, built, takes the place of a new clone.
    { from: 'git clone <this repository> oratorio', to: `ln -s ${root} oratorio` },
    // The port of the page may be in use here, so another one is named wherever it is the default.
    { from: 'run practice -- ~/practice\n', to: `run practice -- ~/practice --backend-port ${port}\n` },
    { from: 'oratorio backend status', to: `oratorio backend status --url http://127.0.0.1:${port}` },
    { from: 'http://127.0.0.1:5087', to: `http://127.0.0.1:${port}` },
  ] as const;

/** Before this command the page says to press Ctrl-C in the other terminals. */
const afterInterrupt = 'oratorio hub stop';

/** The terminals of the reader. A block of the first one runs to its end; in others a program runs until Ctrl-C. */
class Terminals {
  readonly #env: Readonly<Record<string, string>>;
  readonly #state: string;
  readonly #serving = new Map<string, { readonly child: ChildProcess; output: string }>();

  constructor({ root: home, env }: Place) {
    const { ORATORIO_HOME: _, ...others } = env;
    const TMPDIR = join(home, 'temporary');
    mkdirSync(TMPDIR);
    this.#env = { ...others, TMPDIR, npm_config_update_notifier: 'false' };
    this.#state = join(home, 'terminal');
    writeFileSync(this.#state, `cd ${home}\n`);
  }

  /** Runs commands after all earlier ones of this terminal: in their directory, with their aliases. */
  async run(text: string): Promise<{ readonly code: number | null; readonly output: string }> {
    const script = `shopt -s expand_aliases\n. ${this.#state}\nset -e\n${text}{ echo "cd '$PWD'"; alias -p; } > ${this.#state}\n`;
    const child = this.#spawn(script);
    let output = '';
    const take = (chunk: unknown) => {
      output += String(chunk);
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, output };
  }

  /** Starts a program that serves in a terminal of this name. */
  serve(name: string, text: string): void {
    const child = this.#spawn(`set -e\n${text}`);
    const terminal = { child, output: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        terminal.output += String(chunk);
      });
    }
    this.#serving.set(name, terminal);
  }

  /** Output of a terminal so far. @throws Error when its program has failed */
  shownIn(name: string): string {
    const { child, output } = this.#serving.get(name) ?? {};
    if (child?.exitCode) throw new Error(`the program in the ${name} terminal failed: ${output}`);
    return output ?? '';
  }

  /** Ctrl-C in every other terminal: the whole foreground group gets the signal. Resolves when they have ended. */
  async interrupt(): Promise<void> {
    for (const { child } of this.#serving.values()) {
      const ended = once(child, 'close');
      process.kill(-(child.pid ?? 0), 'SIGINT');
      await ended;
    }
  }

  #spawn(script: string): ChildProcess {
    return spawn('bash', ['-c', script], { env: this.#env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  }
}

t.test('each command of the tutorial succeeds and prints the output that the page shows', async (t) => {
  const place = makePlace(t, 'oratorio-tutorial-');
  const terminals = new Terminals(place);
  const replacements = replacementsFor(await unusedPort());
  const used = new Set<string>();
  const inTest = ({ text }: Block): string =>
    replacements.reduce((before, { from, to }) => {
      if (before.includes(from)) used.add(from);
      return before.replaceAll(from, to);
    }, text);
  let printed = '';
  for (const block of blocksOf(page)) {
    const { kind, terminal, line } = block;
    const text = inTest(block);
    const name = `line ${line}: ${block.text.split('\n')[0]}`;
    if (kind === 'text' && terminal === 'first') {
      t.equal(missingLine(text, printed), undefined, `${name} is printed`, { printed });
    } else if (kind === 'text') {
      const isShown = () => missingLine(text, terminals.shownIn(terminal)) === undefined || undefined;
      await eventually(isShown, () => `${name} is not in: ${terminals.shownIn(terminal)}`);
    } else if (terminal === 'first') {
      if (text.includes(afterInterrupt)) await terminals.interrupt();
      const { code, output } = await terminals.run(text);
      t.equal(code, 0, `${name} succeeds`, { output });
      printed = output;
    } else terminals.serve(terminal, text);
  }
  t.strictSame([...used].sort(), replacements.map(({ from }) => from).sort(), 'each replacement has a command');
  for (const left of ['practice', 'site', '.oratorio'])
    t.notOk(existsSync(join(place.root, left)), `${left} is removed`);
  const left = readdirSync(join(place.root, 'temporary')).filter((name) => name.startsWith('oratorio-forge-'));
  t.same(left, [], 'regression: Ctrl-C removes the repositories of the practice forge');
});
