import { type AnyActorRef, type AnyMachineSnapshot, isMachineSnapshot, type StateValue } from 'xstate';

/** A supervised actor: a root that was given, or a machine below it. */
export interface WatchedActor {
  /** Id of its machine, by which `machines/` and its documents have it. */
  readonly machine: string;
  /** Workspace of the actor; absent for the Hub itself. */
  readonly workspacePath: string | undefined;
  /** The actor that started it. */
  readonly parent: WatchedActor | undefined;
}

/** Where an actor has gone. */
export interface StateChange {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** All states that are active now, outer before inner, dotted: `starting`, `starting.probing`. */
  readonly states: readonly string[];
  /** Active states that were not active before. */
  readonly entered: readonly string[];
  /** The first that is seen of this actor: nothing led here. */
  readonly isFirst: boolean;
}

/** Receives the states of supervised actors after each event. */
export interface StateListener {
  /** After every event, before `onChange`. */
  onSnapshot(actor: WatchedActor, snapshot: AnyMachineSnapshot): void;
  onChange(actor: WatchedActor, change: StateChange, snapshot: AnyMachineSnapshot): void;
  /** The actor has ended. */
  onGone(actor: WatchedActor, at: number): void;
}

export interface StateWatchOptions {
  readonly listeners: readonly StateListener[];
  /** A listener has thrown. The actor that was watched is not affected. */
  readonly onFault: (error: unknown) => void;
  readonly now?: () => number;
}

/** Watches actors and the machines below them by their snapshots: nothing is copied, and only states are stored. */
export class StateWatch {
  readonly #options: StateWatchOptions;
  readonly #known = new WeakSet<AnyActorRef>();

  constructor(options: StateWatchOptions) {
    this.#options = options;
  }

  /** Best called before the actor starts. Its end is noticed. */
  observe(ref: AnyActorRef, actor: WatchedActor): void {
    this.#known.add(ref);
    let before: readonly string[] | undefined;
    const see = (snapshot: unknown) => {
      if (!isMachineSnapshot(snapshot)) return;
      before = this.#see(actor, snapshot, before);
      this.#findChildren(snapshot, actor);
    };
    const gone = () => this.#notify((listener) => listener.onGone(actor, this.#now()));
    see(ref.getSnapshot());
    ref.subscribe({ next: see, complete: gone, error: gone });
  }

  #see(actor: WatchedActor, snapshot: AnyMachineSnapshot, before: readonly string[] | undefined): readonly string[] {
    this.#notify((listener) => listener.onSnapshot(actor, snapshot));
    const states = pathsOf(snapshot.value);
    const entered = before ? states.filter((state) => !before.includes(state)) : states;
    if (before && entered.length === 0 && states.length === before.length) return before;
    const change = { at: this.#now(), states, entered, isFirst: before === undefined };
    this.#notify((listener) => listener.onChange(actor, change, snapshot));
    return states;
  }

  #findChildren(snapshot: AnyMachineSnapshot, parent: WatchedActor): void {
    for (const child of Object.values(snapshot.children as Record<string, AnyActorRef | undefined>)) {
      if (!child || this.#known.has(child)) continue;
      this.#known.add(child);
      const seen: unknown = child.getSnapshot();
      if (!isMachineSnapshot(seen)) continue;
      this.observe(child, { machine: seen.machine.id, workspacePath: parent.workspacePath, parent });
    }
  }

  /** XState rethrows an observer's error to the whole process. */
  #notify(call: (listener: StateListener) => void): void {
    for (const listener of this.#options.listeners) {
      try {
        call(listener);
      } catch (error) {
        this.#options.onFault(error);
      }
    }
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}

/** `{starting: 'probing'}` is `starting`, `starting.probing`. */
export function pathsOf(value: StateValue, prefix = ''): string[] {
  if (typeof value === 'string') return [prefix + value];
  return Object.entries(value).flatMap(([name, inner]) => [
    prefix + name,
    ...(inner === undefined ? [] : pathsOf(inner, `${prefix}${name}.`)),
  ]);
}
