import type { TraceStore } from '../agent/index.ts';
import type { Automation } from '../protocol/index.ts';
import type { Family } from './metric.ts';
import { RunNumbers } from './run-numbers.ts';
import { TurnExport, type TurnExportOptions } from './turn-export.ts';
import { TurnFollower } from './turn-follower.ts';
import { TurnNumbers } from './turn-numbers.ts';

export interface TelemetryOptions extends TurnExportOptions {
  readonly traces: Pick<TraceStore, 'subscribe'>;
}

/** The numbers of an agent server, and its spans on their way out. */
export interface Telemetry {
  /** For `renderMetrics`. */
  families(): readonly Family[];
  /** State of an automation, at each change. */
  noteAutomation(automation: Pick<Automation, 'id' | 'recentRuns'>, isRemoved: boolean): void;
  /** Stops counting and sends waiting spans, for a short while. Call it after the last trace event. Never rejects. */
  stop(): Promise<void>;
}

/**
 * Counts the events of turns from now on and, if configured, exports them as OpenTelemetry traces. Neither can disturb
 * a turn: both get it when its trace is stored. The SDK is loaded only for an export.
 */
export function startTelemetry({ traces, ...options }: TelemetryOptions): Telemetry {
  const numbers = new TurnNumbers();
  const runs = new RunNumbers();
  const counting = new TurnFollower([numbers]);
  const exporting = options.settings.Enabled ? new TurnExport(options) : undefined;
  const unsubscribe = traces.subscribe((events) => {
    for (const event of events) {
      counting.take(event);
      exporting?.take(event);
    }
  });
  return {
    families: () => [...numbers.families(), ...runs.families(), ...(exporting?.families() ?? [])],
    noteAutomation: (automation, isRemoved) => runs.note(automation, isRemoved),
    async stop() {
      unsubscribe();
      await exporting?.stop();
    },
  };
}
