import { checkHost, enableChange, engineOnce, ingressStatus } from '../../deploy/index.ts';
import { askText, canAsk } from '../ask.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { carryOut, showPlan } from '../server/carry-out.ts';
import { given, isMissing, stackDirectory } from '../server/given.ts';
import { checkSecretOut } from '../server/print-secrets.ts';
import { problemOf } from '../server/problem-of.ts';
import { appSteps } from '../server/steps-after.ts';
import { webhookAnswers } from '../server/webhook-answers.ts';

const command = 'server webhook enable';

/** `oratorio server webhook enable`: GitHub can deliver to a stack. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const directory = stackDirectory(context);
  checkSecretOut(context);
  const host = given(context, 'public-host') ?? (await askHost(context));
  const answers = await webhookAnswers(context, { host, email: 'acme-email', secretFile: 'secret-file' });
  const done = await carryOut(context, enableChange(directory, answers), 'Enable it like this?');
  if (done.state === 'dry') {
    showPlan(context, done.plan);
    return exitCodes.ok.code;
  }
  const ingress = await ingressStatus(directory, await engineOnce(context)(), context);
  if (output.json) output.document({ ...ingress, changed: done.changed });
  else if (ingress.url !== null) for (const line of appSteps(ingress.url)) output.line(line);
  return exitCodes.ok.code;
}

async function askHost(context: CommandContext): Promise<string> {
  if (!canAsk(context)) throw isMissing(context, command, 'public-host', 'The public host');
  return askText({
    message: 'Public DNS name or IP address of this machine?',
    placeholder: 'reviews.your-company.com',
    check: (answer) => problemOf(() => checkHost(answer, 'production')),
  });
}
