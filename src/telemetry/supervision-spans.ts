import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { AnyMachineSnapshot } from 'xstate';
import type { StateChange, StateListener, WatchedActor } from './state-watch.ts';
import { workspaceId } from './workspace-id.ts';

export type Facts = Readonly<Record<string, string | number | boolean | null | Date>>;

export interface SupervisionSpansOptions {
  readonly tracer: Tracer;
  /** Whether spans contain paths and messages of errors. */
  readonly includeContent: boolean;
  /** Visible fields of a machine's context. */
  readonly factsOf: (machine: string, context: unknown) => Facts;
}

/** Neither running nor requested: there is no span. */
const rest = 'stopped';

/** A slot decides, and runs nothing: there is no span. Its sidecar has spans of its own. */
const slot = 'sidecar-slot';

/** A stay in one state. */
interface Stay {
  readonly state: string;
  readonly span: Span;
  readonly context: Context;
}

interface Life {
  /** Everything since the last start hangs under its first stay. */
  root: { readonly context: Context; readonly spanContext: SpanContext } | undefined;
  /** Open ones, outer before inner. */
  stays: readonly Stay[];
}

/**
 * Supervised actors as spans: one for each stay in a state, those of inner states below it. A trace begins with a start and
 * contains everything until the next start, so a stay in `running` may be days long: it is sent when it ends.
 */
export class SupervisionSpans implements StateListener {
  readonly #options: SupervisionSpansOptions;
  readonly #lives = new Map<WatchedActor, Life>();

  constructor(options: SupervisionSpansOptions) {
    this.#options = options;
  }

  onSnapshot(): void {
    // Only states make spans.
  }

  onChange(actor: WatchedActor, { at, states, entered }: StateChange, snapshot: AnyMachineSnapshot): void {
    if (actor.machine === slot) return;
    const life = this.#lifeOf(actor);
    const facts = this.#attributesOf(actor, snapshot);
    const failure = failureOf(snapshot);
    const hasFailed = failure !== undefined && entered.some((state) => state === 'exited' || state === 'unhealthy');
    const left = life.stays.filter(({ state }) => !states.includes(state));
    for (const { span } of left.toReversed()) end(span, at, facts, hasFailed ? failure : undefined);
    life.stays = life.stays.filter((stay) => !left.includes(stay));
    for (const state of entered) if (state !== rest) this.#enter(actor, life, state, at, facts);
  }

  onGone(actor: WatchedActor, at: number): void {
    const life = this.#lives.get(actor);
    this.#lives.delete(actor);
    for (const { span } of life?.stays.toReversed() ?? []) span.end(new Date(at));
  }

  /** Marks open spans as unfinished: the process ends. */
  close(): void {
    for (const { stays } of this.#lives.values()) {
      for (const { span } of stays.toReversed()) span.setAttribute('oratorio.unfinished', true).end();
    }
    this.#lives.clear();
  }

  #enter(actor: WatchedActor, life: Life, state: string, at: number, attributes: Attributes): void {
    const outer = life.stays.findLast((stay) => state.startsWith(`${stay.state}.`));
    const former = life.root;
    if (state === 'starting') life.root = undefined;
    const parent = outer?.context ?? life.root?.context ?? this.#above(actor) ?? ROOT_CONTEXT;
    const isNewTrace = parent === ROOT_CONTEXT;
    const span = this.#options.tracer.startSpan(
      `${actor.machine} ${state}`,
      {
        startTime: new Date(at),
        attributes: { ...attributes, 'oratorio.machine': actor.machine, 'oratorio.state': state },
        ...(isNewTrace &&
          former && { links: [{ context: former.spanContext, attributes: { 'oratorio.link': 'previous_start' } }] }),
      },
      parent,
    );
    const context = trace.setSpan(ROOT_CONTEXT, span);
    life.root ??= { context, spanContext: span.spanContext() };
    life.stays = [...life.stays, { state, span, context }];
  }

  /** A sidecar belongs to the start of its agent server. */
  #above({ parent }: WatchedActor): Context | undefined {
    return parent && (this.#lives.get(parent)?.root?.context ?? this.#above(parent));
  }

  #lifeOf(actor: WatchedActor): Life {
    let life = this.#lives.get(actor);
    if (!life) {
      life = { root: undefined, stays: [] };
      this.#lives.set(actor, life);
    }
    return life;
  }

  #attributesOf({ machine, workspacePath }: WatchedActor, snapshot: AnyMachineSnapshot): Attributes {
    const { includeContent, factsOf } = this.#options;
    const attributes: Attributes = {};
    for (const [name, value] of Object.entries(factsOf(machine, snapshot.context))) {
      if (value === null || value instanceof Date || (name === 'lastError' && !includeContent)) continue;
      attributes[`oratorio.${name}`] = value;
    }
    if (workspacePath === undefined) return attributes;
    attributes['oratorio.workspace'] = workspaceId(workspacePath);
    if (includeContent) attributes['oratorio.workspace_path'] = workspacePath;
    return attributes;
  }
}

/** The kind of failure that the machine keeps, if it knows such a thing. */
function failureOf({ context }: AnyMachineSnapshot): string | undefined {
  const { failureKind } = context as { readonly failureKind?: unknown };
  return typeof failureKind === 'string' ? failureKind : undefined;
}

function end(span: Span, at: number, attributes: Attributes, failure: string | undefined): void {
  span.setAttributes(attributes);
  if (failure !== undefined) {
    span.setAttribute('error.type', failure).setStatus({ code: SpanStatusCode.ERROR, message: failure });
  }
  span.end(new Date(at));
}
