import { type CheckResult, DeployError, engineOnce, examine, verdictOf } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { stackDirectory } from '../server/given.ts';

/** `oratorio server doctor`: shows the problems of a stack, and what to do. */
export async function run(context: CommandContext): Promise<number> {
  const { output, options, env, signal, lists } = context;
  const results: CheckResult[] = [];
  const only = lists['only'] ?? [];
  const progress = output.json ? undefined : output.progress('Looking');
  try {
    const engine = await engineOnce(context)().catch((error: unknown) => {
      if (error instanceof DeployError && error.code !== 'cancelled') return error;
      throw error;
    });
    const checks = examine({
      directory: stackDirectory(context),
      env,
      signal,
      engine,
      isOffline: options['offline'] === true,
      ...(only.length > 0 && { only }),
    });
    for await (const result of checks) {
      results.push(result);
      for (const line of linesOf(result, context)) output.line(line);
    }
  } finally {
    progress?.stop();
  }
  const { counts, isWell } = verdictOf(results);
  const { fail: failed, warn: warned, skip: skipped } = counts;
  if (output.json) output.document({ ok: isWell, failed, warned, skipped, checks: results });
  else output.line(`\n${results.length} checks: ${failed} failed, ${warned} warned, ${skipped} skipped.`);
  return isWell ? exitCodes.ok.code : exitCodes.unhealthy.code;
}

function linesOf({ status, id, saw, hint }: CheckResult, { output }: CommandContext): readonly string[] {
  const { green, yellow, red, dim } = output.colors;
  const sign = { ok: green('✓'), warn: yellow('!'), fail: red('✖'), skip: dim('-') }[status];
  return [`${sign} ${id}: ${saw}`, ...(hint === null ? [] : [dim(`    ${hint}`)])];
}
