import { CatalogueError, catalogueUrl, liveTest, ModelError, refreshCatalogue, withModels } from '../../agent/index.ts';
import {
  type Config,
  ConfigChangeError,
  ConfigError,
  planUserChange,
  settingPlaces,
  userConfigFile,
} from '../../config/index.ts';
import { messageOf } from '../../lib/index.ts';
import { remedyOfFailure, remedyText } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, invalidConfig, quoted, saveUserChange, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { during } from '../hub.ts';
import { exitOf, restartHint, showTest } from '../login/index.ts';
import { effective, inForce, listHeading, listRows, problemOf, rowsOf, sourceIn } from '../model/index.ts';
import { columns, pairs } from '../render.ts';

/** `oratorio model` */
export async function show(context: CommandContext): Promise<number> {
  const { output } = context;
  const state = await explained(() => inForce(effective(context), context));
  if (output.json) output.document(state);
  for (const row of pairs(rowsOf(state), output.colors)) output.line(row);
  if (state.restrictedSettings.length > 0) {
    output.warn(`Ignored until you trust the workspace: ${state.restrictedSettings.join(', ')}`);
  }
  if (state.provider.value === 'demo') output.note('Connect a model with: oratorio login');
  return exitCodes.ok.code;
}

/** `oratorio model list` */
export async function list(context: CommandContext): Promise<number> {
  const { output, home, options, signal } = context;
  const { config } = effective(context);
  const from = options['from'];
  if (from !== undefined && options['refresh'] !== true) throw usageError('--from needs --refresh.', 'model list');
  if (options['refresh'] === true) {
    const url = typeof from === 'string' ? from : catalogueUrl;
    const { providers } = await explained(() =>
      during(context, `Reading ${url}`, () => refreshCatalogue({ home, url, signal })),
    );
    const count = Object.values(providers).reduce((sum, models) => sum + models.length, 0);
    output.note(`The catalogue has ${count} models of ${Object.keys(providers).length} providers now.`);
  }
  const { lists, current } = await explained(() =>
    withModels(config, home, async (models) => ({
      lists: await during(context, 'Asking the providers', () => models.lists(signal)),
      current: models.model,
    })),
  );
  const models = lists.flatMap((each) => ('models' in each ? each.models : each.catalogued));
  if (output.json) {
    const problems = lists.flatMap((each) => problemOf(each) ?? []);
    output.document({ current, models, problems });
  } else for (const problem of lists.flatMap((each) => problemOf(each) ?? [])) output.warn(problem);
  for (const row of columns(listHeading, listRows(models, current), output)) output.line(row);
  return models.length > 0 ? exitCodes.ok.code : exitCodes.failure.code;
}

/** `oratorio model set` */
export async function set(context: CommandContext): Promise<number> {
  const { argument, output, home, env, options } = context;
  const effort = options['effort'];
  if (argument === undefined && effort === undefined)
    throw usageError('model set needs the name of a model.', 'model set');
  const changes = [
    ...(argument === undefined ? [] : [{ path: ['Model'] as const, value: argument }]),
    ...(effort === undefined ? [] : [{ path: ['ReasoningEffort'] as const, value: effort }]),
  ];
  const change = await explained(async () => planUserChange({ home, env, set: changes }));
  const { file, config } = change;
  if (argument !== undefined) await warnUnlisted(context, config, argument);
  saveUserChange(change);
  const state = effective(context);
  for (const { path } of changes) {
    const source = sourceIn(state, path[0]);
    if (source && source.file !== userConfigFile(home))
      output.warn(`${source.file} sets ${path[0]} for this workspace.`);
  }
  if (output.json) output.document({ file, model: argument ?? null, effort: effort ?? null });
  output.line(`Saved to ${file}`);
  output.line(output.colors.dim(`  ${restartHint}`));
  return exitCodes.ok.code;
}

async function warnUnlisted(context: CommandContext, config: Config, name: string): Promise<void> {
  const { output, home, signal } = context;
  const names = await withModels(config, home, (models) => models.listModels(signal)).catch((error: unknown) => {
    signal.throwIfAborted();
    output.warn(`Not compared with the provider's list: ${messageOf(error)}`);
    return undefined;
  });
  if (names && !names.some(({ id }) => id === name)) {
    output.warn(`The provider does not list ${name}. To see its list: oratorio model list`);
  }
}

/** `oratorio model test` */
export async function test(context: CommandContext): Promise<number> {
  const { output } = context;
  const loaded = effective(context);
  const result = await during(context, 'Sending a request', () => liveTest(loaded, context));
  if (!result.ok) {
    const remedy = remedyOfFailure(result.code, settingPlaces(loaded, context.home));
    const next = remedy ? ` Next: ${remedyText(remedy, quoted(loaded.workspace ?? '.'))}` : '';
    throw new CliError(exitOf(result), result.message, result.hint + next, result.code);
  }
  if (output.json) output.document(result);
  showTest(output, result);
  return exitCodes.ok.code;
}

/** Turns faults that the user can correct into what to do. @throws CliError */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ModelError)
      throw new CliError('failure', error.message, 'See: oratorio model test', error.code);
    if (error instanceof CatalogueError) {
      throw new CliError('failure', error.message, 'The catalogue is unchanged.', 'catalogueUnavailable');
    }
    if (!(error instanceof ConfigError || error instanceof ConfigChangeError)) throw error;
    throw invalidConfig(error);
  }
}
