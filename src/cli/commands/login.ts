import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { logIn, restartHint, showTest } from '../login/index.ts';

/** `oratorio login [provider]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, options } = context;
  const { agent } = options;
  if (typeof agent === 'string') return (await import('../login/agent.ts')).logInToAgent(context, agent);
  const { provider, model, file, test } = await logIn(context);
  if (output.json) output.document({ provider, model: model || null, file, test: test ?? null });
  if (test?.ok === true) showTest(output, test);
  output.line(`Saved to ${file}`);
  output.line(output.colors.dim(`  ${restartHint}`));
  return exitCodes.ok.code;
}
