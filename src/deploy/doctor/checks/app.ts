import { missingEvents, missingPermissions, neededEvents } from '../../../github/index.ts';
import { defaults } from '../../defaults.ts';
import { readDeliveries, readHook } from '../../github/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn, worst } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

/** GitHub takes the App's id and key, and they are of one App. */
export async function identity(context: DoctorContext): Promise<Finding> {
  const { appId } = context.config();
  const { id, name } = await context.appFacts();
  // A client id is not a number; GitHub has checked it itself.
  if (/^\d+$/.test(appId ?? '') && String(id) !== appId)
    return fail(`The key is of App ${id}, not of ${appId}.`, 'Set GitHub.AppId to that number.');
  return ok(`${plain(name)} (${id}).`);
}

const plain = (text: string): string => text.replace(/[^\x20-\x7e]+/g, '?').slice(0, 100);

export async function permissions(context: DoctorContext): Promise<Finding> {
  const { writesEnabled } = context.config();
  const { permissions: granted, url } = await context.appFacts();
  const missing = missingPermissions(granted, writesEnabled);
  return missing.length === 0
    ? ok(`All that is needed ${writesEnabled ? 'to write reviews back' : 'to read'}.`)
    : fail(`Missing: ${missing.join(', ')}.`, `Grant them under ${url} and accept them for the installation.`);
}

/** Without `issue_comment` no user can request a review; without the others changes are found only by polling. */
export async function events(context: DoctorContext): Promise<Finding> {
  const missing = missingEvents((await context.appFacts()).events);
  if (missing.length === 0) return ok(`${neededEvents.join(', ')}.`);
  const saw = `Not subscribed: ${missing.join(', ')}.`;
  const hint = 'Tick them on the page of the App under Permissions & events.';
  const isVital = context.hasIngress && missing.includes(neededEvents[0]);
  return isVital ? fail(saw, hint) : warn(saw, hint);
}

/** GitHub delivers to this gateway, as JSON, and verifies its certificate (specification §4.4, rules 1 and 5). */
export async function hook(context: DoctorContext): Promise<Finding> {
  const wanted = `${context.publicHost().origin}${defaults.webhookPath}`;
  const page = 'On the page of the App:';
  const found = await readHook(context.app());
  if (found === null) return fail('The App has no webhook.', `${page} make it active, with ${wanted}`);
  const { url, isJson, verifiesTls, hasSecret } = found;
  return worst(
    [
      url === wanted ? ok('url') : fail(`It delivers to ${withoutLogIn(url)}`, `${page} set the address to ${wanted}`),
      isJson ? ok('json') : fail('It delivers forms', `${page} set the content type to application/json.`),
      verifiesTls ? ok('tls') : fail('It does not verify the certificate', `${page} enable SSL verification.`),
      hasSecret ? ok('secret') : fail('It has no secret', `${page} enter the webhook secret.`),
    ],
    `It delivers to ${wanted} as JSON and verifies the certificate.`,
  );
}

/** Removes credentials from an address: it may hold a password or a key. */
function withoutLogIn(url: string): string {
  if (url === '') return 'no address';
  if (!URL.canParse(url)) return 'a text that is not an address';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

const meanings: Readonly<Record<number, string>> = {
  0: 'GitHub could not connect: check DNS, the firewall and ports 80 and 443.',
  403: 'The secret of the App is not that of .env: enter it again on the page of the App.',
  404: 'The address of the webhook is not that of the gateway.',
  502: 'The gateway did not reach the backend: oratorio server status',
  503: 'The backend had no webhook secret: oratorio server restart',
};

/** Checks the outcome of the last deliveries. */
export async function deliveries(context: DoctorContext): Promise<Finding> {
  const found = await readDeliveries(context.app(), limits.deliveries);
  const [newest] = found ?? [];
  if (!found || !newest) return ok('GitHub has delivered nothing lately.');
  const missed = found.filter(({ isMissed }) => isMissed);
  const [last] = missed;
  if (last === undefined) return ok(`The last ${found.length} arrived.`);
  const codes = [...new Set(missed.map(({ statusCode }) => statusCode))].map((code) =>
    code === 0 ? 'no connection' : String(code),
  );
  const saw = `${missed.length} of the last ${found.length} did not arrive (${codes.join(', ')}).`;
  const again =
    'The backend asks for them again by itself; or: Advanced → Recent Deliveries → Redeliver, on the page of the App.';
  const hint = [meanings[last.statusCode], again].filter((each) => each !== undefined).join(' ');
  return newest.isMissed ? fail(saw, hint) : warn(saw, hint);
}
