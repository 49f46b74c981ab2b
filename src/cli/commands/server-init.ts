import {
  checkHost,
  DeployError,
  defaults,
  enableChange,
  engineOnce,
  initChange,
  portOfStack,
  readLeftovers,
  stackStatus,
  tunnelLine,
  type WebhookAnswers,
} from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { carryOut, showPlan } from '../server/carry-out.ts';
import { stackDirectory } from '../server/given.ts';
import { initAnswers } from '../server/init-answers.ts';
import { appSteps, tunnelSteps, tunnelTarget } from '../server/steps-after.ts';

/** `oratorio server init`: a new stack, and its gateway where one is wanted. */
export async function run(context: CommandContext): Promise<number> {
  const left = readLeftovers(stackDirectory(context, defaults.directory));
  const answers = await initAnswers(context, left);
  const done = await carryOut(context, initChange(answers), 'Set it up like this?');
  if (done.state === 'dry') {
    showPlan(context, done.plan);
    return exitCodes.ok.code;
  }
  const { directory, webhook, starts } = answers;
  if (webhook && starts) await enable(context, directory, webhook);
  await report(context, directory, starts, webhook);
  return exitCodes.ok.code;
}

/** Parts that are not set up again because they run already. */
async function enable(context: CommandContext, directory: string, webhook: WebhookAnswers): Promise<void> {
  try {
    await carryOut(context, enableChange(directory, webhook), null);
  } catch (error) {
    if (!(error instanceof DeployError)) throw error;
    const again = `The stack runs without a gateway. Try again: oratorio server webhook enable --dir ${quoted(directory)} --public-host ${webhook.publicHost}`;
    throw new DeployError(error.code, error.message, [error.hint, again].filter(Boolean).join('\n  '), {
      cause: error,
    });
  }
}

const webhookUrl = ({ publicHost, certificates }: WebhookAnswers): string =>
  `${checkHost(publicHost, certificates).origin}${defaults.webhookPath}`;

async function report(
  context: CommandContext,
  directory: string,
  starts: boolean,
  webhook: WebhookAnswers | null,
): Promise<void> {
  const { output } = context;
  const target = tunnelTarget();
  if (!starts) {
    const tunnel = tunnelLine({ ...target, port: portOfStack(directory) });
    if (output.json) return output.document({ directory, started: false, tunnel });
    output.line(
      `\n${output.colors.bold(directory)} is written. Start it: oratorio server restart --dir ${quoted(directory)}`,
    );
    if (webhook) for (const line of appSteps(webhookUrl(webhook))) output.line(line);
    return;
  }
  const status = await stackStatus(directory, await engineOnce(context)(), { signal: context.signal, ...target });
  if (output.json) return output.document({ started: true, ...status });
  output.line(`\n${output.colors.bold(directory)} runs: ${status.url}`);
  for (const line of tunnelSteps(status.tunnel)) output.line(line);
  if (webhook && status.ingress.url !== null) for (const line of appSteps(status.ingress.url)) output.line(line);
  output.line('Check it with: oratorio server status, oratorio server doctor');
}
