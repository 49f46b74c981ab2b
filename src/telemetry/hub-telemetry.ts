import type { AnyActorRef } from 'xstate';
import type { Config } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, version } from '../protocol/index.ts';
import type { Family } from './metric.ts';
import { SpanExport } from './span-export.ts';
import { type StateListener, StateWatch } from './state-watch.ts';
import { SupervisionNumbers } from './supervision-numbers.ts';
import type { Facts, SupervisionSpans } from './supervision-spans.ts';

export interface HubTelemetryOptions {
  /** The user's settings: the Hub has no workspace. */
  readonly settings: Config['Telemetry'];
  /** Visible fields of a context, by machine: `projections` of the inspection. */
  readonly projections: Readonly<Record<string, (context: never) => Facts>>;
  readonly logger: Logger;
  /** See `SpanExportOptions`. */
  readonly flushMs?: number | undefined;
}

/** The numbers of the Hub's supervision, and its spans on their way out. */
export interface HubTelemetry {
  /** Watches a root actor and the machines below it. Called before it starts. */
  observe(actor: AnyActorRef, machine: 'hub' | 'agent-server', workspacePath?: string): void;
  families(): readonly Family[];
  /** Sends waiting spans, for a short while. Never rejects. */
  stop(): Promise<void>;
}

/** Counts the states of supervised actors and, if configured, exports them as OpenTelemetry traces. */
export function startHubTelemetry(options: HubTelemetryOptions): HubTelemetry {
  const numbers = new SupervisionNumbers();
  const exporting = options.settings.Enabled ? new StateExport(options) : undefined;
  const watch = new StateWatch({
    listeners: [numbers, ...(exporting ? [exporting] : [])],
    onFault: (error) => options.logger.bug(error),
  });
  return {
    observe: (actor, machine, workspacePath) => watch.observe(actor, { machine, workspacePath, parent: undefined }),
    families: () => [...numbers.families(), ...(exporting?.families() ?? [])],
    stop: async () => exporting?.stop(),
  };
}

/** Exports states as spans. States wait while the SDK is being loaded. */
class StateExport implements StateListener {
  readonly #export: SpanExport;
  #spans: SupervisionSpans | undefined;
  #early: ((spans: SupervisionSpans) => void)[] = [];

  constructor({ settings, projections, logger, flushMs }: HubTelemetryOptions) {
    this.#export = new SpanExport({
      settings,
      logger,
      flushMs,
      resource: { 'service.name': 'oratorio-hub', 'service.version': version },
      makeSpans: async (tracer) => {
        const { SupervisionSpans } = await import('./supervision-spans.ts');
        const factsOf = (machine: string, context: unknown) => projections[machine]?.(context as never) ?? {};
        const spans = new SupervisionSpans({ tracer, includeContent: settings.IncludeContent, factsOf });
        for (const call of this.#early) call(spans);
        this.#early = [];
        this.#spans = spans;
        return spans;
      },
    });
  }

  onSnapshot(): void {
    // Only states make spans.
  }

  onChange(...heard: Parameters<StateListener['onChange']>): void {
    this.#withSpans((spans) => spans.onChange(...heard));
  }

  onGone(...heard: Parameters<StateListener['onGone']>): void {
    this.#withSpans((spans) => spans.onGone(...heard));
  }

  families(): readonly Family[] {
    return this.#export.numbers.families();
  }

  stop(): Promise<void> {
    return this.#export.stop();
  }

  #withSpans(call: (spans: SupervisionSpans) => void): void {
    if (this.#spans) call(this.#spans);
    else if (this.#early.length < defaults.telemetry.queueSpans) this.#early.push(call);
    else this.#export.numbers.dropped(1);
  }
}
