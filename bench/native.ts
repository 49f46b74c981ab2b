import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onExit } from './processes.ts';

export interface NativePrograms {
  /** SSE broadcaster in C: the limit. */
  readonly broadcaster: string;
  readonly sseLoad: string;
  readonly httpLoad: string;
  readonly chatLoad: string;
  /** Walk of a tree: the limit of a scan. */
  readonly treeWalk: string;
}

function compiler(): string {
  for (const name of [process.env['CC'], 'cc', 'gcc', 'clang']) {
    if (name && spawnSync(name, ['--version']).status === 0) return name;
  }
  throw new Error(
    'The benchmarks need a C compiler for the load client and the limit: install cc, gcc or clang, or set CC.',
  );
}

/** Compiles the programs of bench/native into a directory of this run. Throws with what to do where that is impossible. */
export function buildNative(): NativePrograms {
  if (process.platform !== 'linux') throw new Error('The benchmarks need Linux: the load client uses epoll and /proc.');
  const cc = compiler();
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-'));
  onExit(() => rmSync(directory, { recursive: true, force: true }));
  const build = (name: string): string => {
    const output = join(directory, name);
    const source = join(import.meta.dirname, 'native', `${name}.c`);
    const { status, stderr } = spawnSync(cc, ['-O2', '-Wall', '-o', output, source], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${cc} cannot compile bench/native/${name}.c:\n${stderr}`);
    return output;
  };
  return {
    broadcaster: build('broadcaster'),
    sseLoad: build('sse-load'),
    httpLoad: build('http-load'),
    chatLoad: build('chat-load'),
    treeWalk: build('tree-walk'),
  };
}
