import { type ReadonlySignal, signal } from '@preact/signals';

/** Action of the user, started by a key or from the palette. */
export interface Command {
  /** Unique, e.g. `sessions.deleteAll`. */
  readonly id: string;
  /** Begins with a verb: `Go to sessions`. */
  readonly title: string;
  /** Heading in the palette and in the help. */
  readonly group: string;
  /** `j`, `Shift+J`, `Escape`, `ArrowDown`, `Mod+k` (Ctrl, or Cmd), or a sequence: `g s`. */
  readonly keys?: readonly string[];
  /** Whether the command is available. Absent: always. */
  readonly isEnabled?: () => boolean;
  readonly run: () => void;
}

/** Result of the palette other than a command: a session, an actor, a setting. */
export interface Finding {
  /** Unique among all findings, e.g. `session:thread_1`. */
  readonly id: string;
  readonly title: string;
  readonly detail?: string;
  readonly run: () => void;
}

/** Searches for the text in the palette. */
export interface Finder {
  /** Unique, e.g. `sessions`. */
  readonly id: string;
  /** Kind of its results, in one word: `Session`. */
  readonly group: string;
  /** At most a handful, best first. `query` is not empty. A rejection counts as nothing found. */
  find(query: string, signal: AbortSignal): readonly Finding[] | Promise<readonly Finding[]>;
}

export interface Commands {
  /** Commands, last registered first: those of a view win over those of the shell. */
  readonly all: ReadonlySignal<readonly Command[]>;
  readonly finders: ReadonlySignal<readonly Finder[]>;
  /** Returns a function that unregisters them: call it in the clean-up of an effect. */
  register(commands: readonly Command[]): () => void;
  /** Adds a finder, which replaces an earlier one of the same id. Returns a function that removes it. */
  provide(finder: Finder): () => void;
}

export function createCommands(): Commands {
  const all = signal<readonly Command[]>([]);
  const finders = signal<readonly Finder[]>([]);
  return {
    all,
    finders,
    register(commands) {
      all.value = [...commands, ...all.peek()];
      return () => {
        all.value = all.peek().filter((command) => !commands.includes(command));
      };
    },
    provide(finder) {
      finders.value = [finder, ...finders.peek()];
      return () => {
        finders.value = finders.peek().filter((each) => each !== finder);
      };
    },
  };
}
