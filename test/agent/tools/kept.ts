/** Agent servers that are killed while a command runs, and the files of the command. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import type { ToolContext } from '../../../src/agent/tool.ts';
import type { ExecSettings } from '../../../src/agent/tools/exec/exec.ts';
import { adoptExec, keptOfCall } from '../../../src/agent/tools/exec/kept-exec.ts';
import { endKept, keptDirectory, keptMarker } from '../../../src/supervise/index.ts';
import { scanProcesses } from '../../../src/supervise/scan.ts';
import { killIfThere } from '../../hub/harness.ts';
import { program } from '../../programs.ts';
import { until } from '../../supervise/helpers.ts';
import { contextOf, temporaryWorkspace } from './run-tool.ts';

export const secret = 'sk-0123456789abcdef';
export const ids = { threadId: 'thread', turnId: 'turn', callId: 'call' };
/** Deadline of a command that outlives its agent server: on a busy machine the server shows its output and is killed before it. */
export const soonMs = 8_000;
export const tookTooLong = /^on\n\nThe command was ended because it took longer than 8000 ms/;
export const onPosix = { skip: process.platform === 'win32' && 'there is no keeper' };

/** A workspace with the directory of its kept commands. */
export function places(t: Test) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const directory = keptDirectory(home, workspacePath);
  const at = (name: string) => join(workspacePath, name);
  const settings = {
    ...{ timeoutMs: 60_000, maxTimeoutMs: 120_000, maxOutputChars: 4_000, sandbox: 'off', network: 'deny', home },
    pathRules: { blockedPaths: [], protectedDirectories: [] },
    ...{ environment: { ...process.env }, passEnvironment: [], secrets: [secret] },
    keep: { directory, patienceSeconds: 600 },
  } satisfies ExecSettings;
  const survivors = async () =>
    (await scanProcesses())
      .filter(
        ({ zombie, marker }) => !zombie && typeof marker === 'object' && marker.value.startsWith(keptMarker(directory)),
      )
      .map(({ pid }) => pid);
  const killSurvivors = async () => (await survivors()).forEach(killIfThere);
  const isClean = async () => {
    t.strictSame(await survivors(), [], 'no process is left');
    t.strictSame(
      readdirSync(directory).filter((name) => name !== 'owner'),
      [],
      'no file is left',
    );
  };
  t.teardown(() => endKept(directory));
  const kept = () => {
    const found = keptOfCall(settings.keep, ids);
    if (!found) throw new Error('no record');
    return found;
  };
  const adopt = async (options: Partial<ToolContext> = {}) => {
    const result = await adoptExec(settings, contextOf({ ...ids, workspacePath, ...options }));
    if (result === undefined) return { kind: 'notStarted' as const };
    const { isUnknown, text } = result;
    return isUnknown
      ? { kind: 'unknown' as const, output: text.split('Output until then: ')[1] ?? '' }
      : { kind: 'ended' as const, result };
  };
  return { workspacePath, directory, at, settings, survivors, killSurvivors, isClean, kept, adopt };
}

export type Places = ReturnType<typeof places>;

/** Starts an agent server with one call. */
export function server(
  t: Test,
  { settings, workspacePath }: Places,
  args: { readonly command: string; readonly timeoutMs?: number; readonly background?: boolean },
  dies?: string,
) {
  const words = ['--conditions=development', '--disable-warning=ExperimentalWarning'];
  const fixture = program('test/fixtures/process/keeps-command.mjs');
  const order = JSON.stringify({ settings: { ...settings, environment: {} }, workspacePath, args, dies });
  const child: ChildProcess = spawn(process.execPath, [...words, fixture, order], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let shown = '';
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { text, result } = JSON.parse(line);
      shown += text ?? (args.background ? result.text : '');
    });
  }
  return {
    exited,
    shown: () => shown,
    showed: (text: string) => until(`output ${text}`, () => shown.includes(text)),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
