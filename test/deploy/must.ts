import { type RunSettings, run } from './run.ts';

/** Runs a program that has to succeed. @returns its output @throws Error with the end of its output */
export async function must(program: string, args: readonly string[], settings: RunSettings): Promise<string> {
  const { exitCode, stdout, stderr } = await run(program, args, settings);
  if (exitCode === 0) return stdout;
  const lastLines = `${stdout}\n${stderr}`.trim().split('\n').slice(-30).join('\n');
  throw new Error(`${program} ${args.slice(0, 4).join(' ')} … ended with ${exitCode}:\n${lastLines}`);
}
