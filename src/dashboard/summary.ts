import { workspaceTrust } from '../config/index.ts';
import { json, type Reply } from '../http/index.ts';
import { type DashboardSummary, defaults, version } from '../protocol/index.ts';
import { summaryOf } from './events.ts';
import type { DashboardOptions } from './options.ts';

/** `GET /DashBoard/api/summary`: as fast with a million events as with ten. */
export function summary({ workspacePath, traces, flush, status, config }: DashboardOptions): () => Promise<Reply> {
  return async () => {
    const { modules, ...now } = await status();
    flush?.();
    const totals = traces.totals();
    const { trust, restrictedSettings } = workspaceTrust(config);
    const body: DashboardSummary = {
      kind: 'workspace',
      workspacePath,
      version,
      ...now,
      ...totals,
      totalTokens: totals.inputTokens + totals.outputTokens,
      recentEvents: traces.recent(defaults.dashboard.recentEvents).map((event) => summaryOf(event, 'short')),
      modules: [...modules],
      trust,
      restrictedSettings: [...restrictedSettings],
    };
    return json(200, body);
  };
}
