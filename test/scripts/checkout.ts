/** A copy of this checkout, for tests of scripts that change files or watch them. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { killTree } from '../../scripts/process-tree.ts';
import { root } from '../../scripts/toolchain.mjs';
import { eventually } from '../hub/harness.ts';

/** Parts of the checkout for the scripts that run tests, which import nothing of the product. */
export const ofScripts = ['scripts', 'package.json', 'package-lock.json', 'tsconfig.json', '.taprc'];

/** Sources of the product, without a build and tests. */
export const ofSources = ['bin', 'machines', 'src', ...ofScripts];

const ofProduct = ['dist', ...ofSources];

/**
 * Copies a part of the checkout, and links `node_modules`. The copy is removed after the test.
 *
 * @returns its absolute path
 */
export function copyCheckout(t: Test, part: readonly string[] = ofProduct): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-checkout-')));
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  const sources = part.map((name) => join(root, name)).filter((path) => existsSync(path));
  // Node takes five times the processor time of `cp`.
  execFileSync('cp', ['-R', ...sources, directory]);
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  return directory;
}

/** Makes the build of a copy that of its sources, after these were changed. */
export function markBuilt(checkout: string): void {
  const stamp = JSON.stringify(join(checkout, 'scripts', 'stamp.mjs'));
  const code = `const { markBuilt, sourcesHash } = await import(${stamp}); markBuilt(sourcesHash());`;
  execFileSync(process.execPath, ['--input-type=module', '--eval', code]);
}

/** A script of a checkout, in a process of its own. */
export interface RunningScript {
  readonly child: ChildProcess;
  /** Everything that it has written to both streams. */
  output(): string;
  /** Resolves with the first match in its output, from a position on. Rejects when the script ends without one. */
  writes(pattern: RegExp, from?: number): Promise<RegExpExecArray>;
  /** Exit code of the script. */
  readonly ended: Promise<number | null>;
  /** Sends a signal; resolves with the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts `scripts/NAME` of a checkout as `npm run` does. It is killed after the test if it still runs. */
export function startScript(t: Test, checkout: string, name: string, ...args: readonly string[]): RunningScript {
  const script = join(checkout, 'scripts', name);
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^_?TAP|^ORATORIO_/.test(key)));
  const child = spawn(process.execPath, [join(checkout, 'scripts', 'node22.mjs'), script, ...args], {
    cwd: checkout,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  t.teardown(() => {
    if (child.exitCode === null && child.pid !== undefined) killTree(child.pid);
    return ended;
  });
  return {
    child,
    output: () => text,
    writes: (pattern, from = 0) =>
      eventually(() => {
        const found = pattern.exec(text.slice(from));
        if (found === null && child.exitCode !== null) throw new Error(`the script ended without ${pattern}: ${text}`);
        return found ?? undefined;
      }, `the script writes ${pattern}`),
    ended,
    end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

/** Command lines of the processes that run in a directory or name it. Linux only. */
export function processesIn(directory: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
      const text = `${readFileSync(`/proc/${pid}/cmdline`, 'utf8')}\0${readFileSync(`/proc/${pid}/environ`, 'utf8')}`;
      return [text, readlinkSync(`/proc/${pid}/cwd`)].some((each) => each.includes(directory))
        ? [`${pid} ${text.split('\0').slice(0, 4).join(' ')}`]
        : [];
    } catch {
      // The process has ended meanwhile, or belongs to another user.
      return [];
    }
  });
}
