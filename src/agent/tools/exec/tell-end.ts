import type { ToolResult } from '../../tool.ts';
import type { CommandEnd } from './run-command.ts';

/** The output, then everything about the end that the model should know. */
export function tellEnd(end: CommandEnd, output: string, timeoutMs: number, maxTimeoutMs: number): ToolResult {
  const { cause, exitCode, signal, sweep } = end;
  const notes = [
    ...(cause === 'timedOut'
      ? [`The command was ended because it took longer than ${timeoutMs} ms. timeoutMs can be at most ${maxTimeoutMs}.`]
      : []),
    ...(cause === 'exited' && signal !== null ? [`The command was ended by ${signal}.`] : []),
    ...(cause === 'exited' && sweep.ended > 0 ? ['Processes it left in the background were ended with it.'] : []),
    ...(sweep.remaining.length > 0
      ? [`Processes that could not be ended: ${sweep.remaining.map(({ pid }) => pid).join(', ')}.`]
      : []),
    ...(exitCode !== null && exitCode !== 0 ? [`Exit code ${exitCode}.`] : []),
  ];
  const text = [output.trimEnd() === '' ? '(no output)' : output.trimEnd(), notes.join('\n')]
    .filter((part) => part !== '')
    .join('\n\n');
  return { text, isError: cause !== 'exited' || exitCode !== 0, ...(exitCode !== null && { exitCode }) };
}
