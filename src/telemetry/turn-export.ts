import type { Config } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type TraceEvent, version } from '../protocol/index.ts';
import type { Described } from './gen-ai.ts';
import type { Family } from './metric.ts';
import { SpanExport } from './span-export.ts';
import { TurnFollower } from './turn-follower.ts';
import { workspaceId } from './workspace-id.ts';

export interface TurnExportOptions {
  readonly settings: Config['Telemetry'];
  /** Canonical path; exported only with `IncludeContent`. */
  readonly workspacePath: string;
  /** See `Runtime.describe`. Called at most once, before the first export and after this function has returned. */
  readonly describe: () => Promise<Described>;
  readonly logger: Logger;
  /** See `SpanExportOptions`. */
  readonly flushMs?: number | undefined;
}

/** Exports turns as spans. Events wait while the SDK is being loaded. */
export class TurnExport {
  readonly #export: SpanExport;
  #follower: TurnFollower | undefined;
  #early: TraceEvent[] = [];

  constructor(options: TurnExportOptions) {
    const { settings, workspacePath, describe, logger, flushMs } = options;
    this.#export = new SpanExport({
      settings,
      logger,
      flushMs,
      resource: {
        'service.name': 'oratorio-agent',
        'service.version': version,
        'oratorio.workspace': workspaceId(workspacePath),
        ...(settings.IncludeContent && { 'oratorio.workspace_path': workspacePath }),
      },
      makeSpans: async (tracer, ids) => {
        const { TurnSpans } = await import('./turn-spans.ts');
        // A provider that cannot be had is the turns' trouble: their spans then do not name it.
        const described = await describe().catch(() => undefined);
        const spans = new TurnSpans({ tracer, ids, includeContent: settings.IncludeContent, described });
        const follower = new TurnFollower([spans]);
        for (const event of this.#early) follower.take(event);
        this.#early = [];
        this.#follower = follower;
        return follower;
      },
    });
  }

  take(event: TraceEvent): void {
    if (this.#follower) this.#follower.take(event);
    else if (this.#early.length < defaults.telemetry.queueSpans) this.#early.push(event);
    else this.#export.numbers.dropped(1);
  }

  families(): readonly Family[] {
    return this.#export.numbers.families();
  }

  stop(): Promise<void> {
    return this.#export.stop();
  }
}
