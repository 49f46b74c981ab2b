import { version } from '../protocol/index.ts';
import { renderMetrics, type ServerStats } from '../telemetry/index.ts';
import type { Assembly } from './assembly.ts';

/** The text of `GET /metrics`. @param servers open connections of each listener of this process */
export async function metricsText(
  { runtime, traces, mcp, automations, telemetry }: Assembly,
  servers: readonly ServerStats[],
): Promise<string> {
  const { countsByState } = await automations.state();
  const { text } = await renderMetrics({
    version,
    telemetry,
    runtime,
    traces,
    mcpByState: mcp.describe().byState,
    automationsByState: countsByState,
    servers,
  });
  return text;
}
