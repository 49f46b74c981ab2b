import {
  type KeptSettings,
  type KeySettings,
  keptSettings,
  type LiveTest,
  liveTest,
  type ModelAccount,
  ModelError,
  planLogin,
  withModels,
} from '../../agent/index.ts';
import { ConfigChangeError, ConfigError, type PlannedUserChange } from '../../config/index.ts';
import { isHttpUrl, maskedAddress, messageOf } from '../../lib/index.ts';
import {
  type KnownProvider,
  type KnownProviderName,
  knownProviderNames,
  knownProviders,
} from '../../protocol/index.ts';
import { askChoice, askText, askYesNo, canAsk } from '../ask.ts';
import type { CommandContext } from '../command.ts';
import { CliError, invalidConfig, saveUserChange, usageError } from '../errors.ts';
import { during } from '../hub.ts';
import { givenKey, isKeyGiven } from './api-key.ts';
import { exitOf, showTest } from './show.ts';

/** Result of a login. */
export interface Login {
  readonly provider: string;
  readonly model: string;
  /** The configuration file. */
  readonly file: string;
  /** Undefined: not tested. */
  readonly test: LiveTest | undefined;
}

/** A provider and the way to its key, before a model is chosen. */
interface Account extends ModelAccount {
  readonly name: KnownProviderName;
}

const anotherModel = '';
/** Models that a terminal shows at once. */
const longestList = 40;

/**
 * Connects a model: asks for values missing in the options, sends one request, and writes the user's configuration. Nothing is
 * written before the request was answered, unless the user wants it so.
 * @throws CliError
 */
export async function logIn(context: CommandContext): Promise<Login> {
  const name = await providerOf(context);
  const known: KnownProvider = knownProviders[name];
  const kept = keptSettings(context, known);
  const endPoint = await endPointOf(context, known, kept);
  const { account, model } = await accountOf(context, known, { name, kind: known.kind, endPoint, kept });
  reportKept(context, account);
  const change = planned(context, account, model);
  const test = context.options['test'] === false ? undefined : await tested(context, change);
  saveUserChange(change);
  return { provider: name, model: test?.ok === true ? test.model : model, file: change.file, test };
}

/** The service refuses a typed key. */
class KeyRefused extends Error {}

/** Asks for the key and the model. Asks for the key again while the provider refuses a typed key. */
async function accountOf(
  context: CommandContext,
  known: KnownProvider,
  service: Omit<Account, keyof KeySettings>,
): Promise<{ readonly account: Account; readonly model: string }> {
  for (;;) {
    const account = { ...service, ...(await givenKey(context, known.keyPage)) };
    try {
      return { account, model: await modelOf(context, account, known) };
    } catch (error) {
      if (!(error instanceof KeyRefused)) throw error;
      context.output.note(`The provider refuses this key: ${error.message} Enter it again, or stop with Ctrl-C.`);
    }
  }
}

async function providerOf(context: CommandContext): Promise<KnownProviderName> {
  const { argument } = context;
  const named = knownProviderNames.find((name) => name === argument);
  if (named) return named;
  if (!canAsk(context)) {
    throw usageError(`login needs a provider: ${knownProviderNames.join(', ')}.`, 'login');
  }
  const choices = knownProviderNames.map((value) => ({ value, label: knownProviders[value].label }));
  return askChoice('Which model provider?', choices);
}

/** Reports the values of the file that apply, because no option overrides them. */
function reportKept({ options, output }: CommandContext, { kept }: Account): void {
  const values = [
    ...(kept?.endPoint && options['end-point'] === undefined ? [`EndPoint ${maskedAddress(kept.endPoint)}`] : []),
    ...(kept?.model && options['model'] === undefined ? [`Model ${kept.model}`] : []),
  ];
  if (values.length > 0) output.note(`Kept: ${values.join(', ')}. To change them: --end-point, --model`);
}

async function endPointOf(
  context: CommandContext,
  known: KnownProvider,
  kept: KeptSettings | undefined,
): Promise<string> {
  const given = context.options['end-point'];
  if (typeof given === 'string') {
    const problem = problemOfUrl(given);
    if (problem !== undefined) throw usageError(`--end-point: ${problem}`, 'login');
    return given;
  }
  if (kept) return kept.endPoint;
  if (known.endPoint !== '' || known.kind !== 'openai-compatible') return known.endPoint;
  if (!canAsk(context)) throw usageError('This provider needs --end-point.', 'login');
  return askText({ message: 'Base URL', placeholder: 'https://models.example.com/v1', check: problemOfUrl });
}

const problemOfUrl = (url: string): string | undefined =>
  isHttpUrl(url) ? undefined : 'It must be an http or https URL.';

async function modelOf(context: CommandContext, account: Account, known: KnownProvider): Promise<string> {
  const given = context.options['model'];
  if (typeof given === 'string') return given;
  if (account.kept?.model) return account.kept.model;
  if (!canAsk(context)) {
    if (known.model !== undefined) return known.model;
    const [only, ...others] = await listed(context, account);
    if (only !== undefined && others.length === 0) return only;
    const names = [only, ...others].filter((name) => name !== undefined).slice(0, longestList);
    throw usageError(`login needs --model${names.length > 0 ? `: ${names.join(', ')}` : ''}.`, 'login');
  }
  const names = await listed(context, account);
  const first = known.model !== undefined && names.includes(known.model) ? [known.model] : [];
  const shown = [...new Set([...first, ...names])].slice(0, longestList);
  if (shown.length > 0) {
    const choices = [
      ...shown.map((value) => ({ value, label: value })),
      { value: anotherModel, label: 'Another one …' },
    ];
    const chosen = await askChoice('Which model?', choices);
    if (chosen !== anotherModel) return chosen;
  }
  const check = (answer: string) => (answer === '' ? 'Type the name of a model.' : undefined);
  return askText({ message: 'Name of the model', ...(known.model !== undefined && { initial: known.model }), check });
}

/**
 * Names of the provider's models; empty if the request fails, which the live test explains.
 *
 * @throws KeyRefused for a typed key
 */
async function listed(context: CommandContext, account: Account): Promise<readonly string[]> {
  const { config } = planned(context, account, '');
  const list = (signal: AbortSignal) => withModels(config, context.home, (models) => models.listModels(signal));
  try {
    const models = await during(context, 'Asking for its models', () => list(context.signal));
    return models.map(({ id }) => id);
  } catch (error) {
    context.signal.throwIfAborted();
    const isTyped = canAsk(context) && account.ApiKey !== undefined && !isKeyGiven(context);
    if (isTyped && error instanceof ModelError && error.code === 'upstreamUnauthorized')
      throw new KeyRefused(error.message);
    context.output.note(`Its models cannot be listed: ${messageOf(error)}`);
    return [];
  }
}

function planned(context: CommandContext, account: Account, model: string): PlannedUserChange {
  try {
    return planLogin(context, account, model, context.options['end-point'] !== undefined);
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof ConfigChangeError)) throw error;
    throw invalidConfig(error);
  }
}

/** @throws CliError for a failed test, unless the user wants to save all the same */
async function tested(context: CommandContext, { config }: PlannedUserChange): Promise<LiveTest> {
  const test = await during(context, 'Sending a request', () => liveTest({ config }, context));
  if (test.ok) return test;
  if (canAsk(context)) {
    showTest(context.output, test);
    if (await askYesNo('Save it anyway?', false)) return test;
    throw new CliError('interrupted', 'Nothing was changed.');
  }
  throw new CliError(
    exitOf(test),
    test.message,
    `${test.hint} Nothing was changed; --no-test skips the request.`,
    test.code,
  );
}
