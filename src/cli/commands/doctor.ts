import type { CommandContext } from '../command.ts';
import { examine, type Finding, verdictOf } from '../doctor/index.ts';
import { exitCodes } from '../exit-codes.ts';
import { inLine } from '../render.ts';
import { canonical, workspacePath } from '../workspace.ts';

/** `oratorio doctor [workspace]`: shows each problem, its place, and the next command. */
export async function run(context: CommandContext): Promise<number> {
  const { output, argument, options } = context;
  const only = argument === undefined ? undefined : canonical(workspacePath(context, argument));
  const findings: Finding[] = [];
  const progress = output.json ? undefined : output.progress('Looking');
  try {
    let workspace: string | null = null;
    const here = context.cwd === undefined ? undefined : canonical(context.cwd);
    for await (const finding of examine({ ...context, isOffline: options['offline'] === true }, only, here)) {
      findings.push(finding);
      if (finding.workspace !== workspace) output.line(`\n${output.colors.bold(inLine(finding.workspace ?? ''))}`);
      workspace = finding.workspace;
      for (const line of linesOf(finding, context)) output.line(line);
    }
  } finally {
    progress?.stop();
  }
  const { counts, isWell } = verdictOf(findings);
  const { fail: failed, warn: warned, skip: skipped } = counts;
  if (output.json) output.document({ ok: isWell, failed, warned, skipped, checks: findings });
  else output.line(`\n${findings.length} checks: ${failed} failed, ${warned} warned, ${skipped} skipped.`);
  return isWell ? exitCodes.ok.code : exitCodes.unhealthy.code;
}

function linesOf({ status, id, saw, where, next }: Finding, { output }: CommandContext): readonly string[] {
  const { green, yellow, red, dim } = output.colors;
  const sign = { ok: green('✔'), warn: yellow('!'), fail: red('✖'), skip: dim('-') }[status];
  return [
    `${sign} ${id.padEnd(18)} ${inLine(saw)}`,
    ...(where === null || status === 'ok' ? [] : [dim(`    in   ${inLine(where)}`)]),
    ...(next === null || status === 'ok' ? [] : [`    ${dim('next')} ${inLine(next)}`]),
  ];
}
