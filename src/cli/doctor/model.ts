import { type LiveTest, liveTest, modelHost, modelSettingsOf } from '../../agent/index.ts';
import { settingPlaces } from '../../config/index.ts';
import { remedyOfFailure, remedyText } from '../../protocol/index.ts';
import { quoted } from '../errors.ts';
import { sourceIn } from '../model/index.ts';
import { type DoctorContext, fail, ok, type Seen, skip, type WithConfig } from './finding.ts';

/** Setting that a failed request blames, and the command that helps where the setting is a default. */
const blame: Readonly<Record<string, { readonly setting: string; readonly next: string }>> = {
  upstreamUnauthorized: { setting: 'ApiKey', next: 'oratorio login' },
  unknownModel: { setting: 'Model', next: 'oratorio model list' },
  upstreamUnreachable: { setting: 'EndPoint', next: 'oratorio model test' },
  upstreamQuotaExceeded: { setting: 'ApiKey', next: 'oratorio login' },
};

/** Sends one small request for each different provider, key and model: two workspaces that share them share the answer. */
export class ModelChecks {
  readonly #seen = new Map<string, Promise<LiveTest>>();
  readonly #context: DoctorContext;

  constructor(context: DoctorContext) {
    this.#context = context;
  }

  #test(loaded: WithConfig): Promise<LiveTest> {
    const { Provider, EndPoint, ApiKey, Model, Wire, Providers } = loaded.config;
    const key = JSON.stringify([Provider, EndPoint, ApiKey, Model, Wire, Providers]);
    const before = this.#seen.get(key);
    if (before) return before;
    const asked = liveTest(loaded, this.#context);
    this.#seen.set(key, asked);
    return asked;
  }

  async check(loaded: WithConfig, workspace: string): Promise<Seen> {
    const id = 'model';
    const { config } = loaded;
    const { main } = modelSettingsOf(config);
    if (main.kind === 'demo') return ok(id, 'demo (offline, no AI)');
    if (this.#context.isOffline) return skip(id, `${main.kind} was not asked`);
    const test = await this.#test(loaded);
    if (test.ok)
      return ok(
        id,
        `${test.model} at ${modelHost(modelSettingsOf(config)) ?? main.kind} answered in ${test.firstTokenMs} ms`,
      );
    const { setting, next } = blame[test.code] ?? { setting: 'Model', next: 'oratorio model test' };
    const file = sourceIn(loaded, setting)?.file;
    const where = file === undefined ? setting : `${file}: ${setting}`;
    const remedy = remedyOfFailure(test.code, settingPlaces(loaded, this.#context.home));
    const edit = remedy && remedyText(remedy, quoted(workspace));
    return fail(id, `${test.message} ${test.hint}`, { where, next: edit ?? next });
  }
}
