import type { SupervisionPolicy } from '../../machines/index.ts';
import { type Config, handOverMsOf, restartPolicyOf } from '../config/index.ts';
import { defaults } from '../protocol/index.ts';

/**
 * The supervision policy of a configuration. Durations are in milliseconds.
 *
 * @param overrides fields that the embedding program sets; they override the configuration
 */
export function supervisionPolicyOf(config: Config, overrides: Partial<SupervisionPolicy>): SupervisionPolicy {
  const { Supervision: settings } = config;
  return {
    ...restartPolicyOf(config),
    startDeadlineMs: settings.StartDeadlineMs,
    proxyDeadlineMs: defaults.apiProxy.readyDeadlineMs,
    handOverMs: handOverMsOf(config),
    gracefulStopMs: defaults.supervise.gracefulStopMs,
    killVerifyMs: defaults.supervise.killVerifyMs,
    livenessFailures: settings.LivenessFailures,
    unhealthyGraceMs: settings.UnhealthyGraceMs,
    idleStopMs: settings.IdleStopMinutes * 60_000,
    ...overrides,
  };
}
