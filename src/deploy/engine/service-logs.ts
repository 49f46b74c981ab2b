import { defaults } from '../defaults.ts';
import type { StackLayout } from '../layout.ts';
import { readProject } from './compose-project.ts';
import { type OperationOptions, quietly } from './operation.ts';
import type { Engine } from './types.ts';

/** The last lines of a container, without secrets. None when they cannot be read. */
export async function lastLog(
  engine: Engine,
  stack: StackLayout,
  container: string,
  lines: number,
  options: OperationOptions = {},
): Promise<string[]> {
  const log: string[] = [];
  const { exitCode } = await engine.run(['logs', '--tail', String(lines), container], {
    ...quietly(options, readProject(stack).secrets),
    timeoutMs: defaults.timeouts.askMs,
    onLine: (line) => log.push(line),
  });
  return exitCode === 0 ? log.slice(-lines) : [];
}
