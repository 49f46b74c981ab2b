import { checkAcmeEmail, checkHost, isCertificates, secretOf, type WebhookAnswers } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { given, secretText } from './given.ts';

const what = 'The secret of the webhook';

/** The gateway that options request. `names` are those of the options. @throws DeployError for an invalid value */
export async function webhookAnswers(
  context: CommandContext,
  names: { readonly host: string; readonly email: string; readonly secretFile: string },
): Promise<WebhookAnswers> {
  const issuer = given(context, 'certificates') ?? 'production';
  const certificates = isCertificates(issuer) ? issuer : 'production';
  const acmeEmail = given(context, names.email) ?? null;
  const secretFile = given(context, names.secretFile);
  checkHost(names.host, certificates);
  if (acmeEmail !== null) checkAcmeEmail(acmeEmail);
  return {
    publicHost: names.host,
    acmeEmail,
    certificates,
    secret: secretFile === undefined ? null : secretOf(await secretText(context, secretFile, what), what),
  };
}
