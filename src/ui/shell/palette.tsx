import { useSignal } from '@preact/signals';
import { useEffect, useId } from 'preact/hooks';
import { fit, rankOf, scattered } from '../../lib/browser.ts';
import type { App } from '../app/app.ts';
import type { Command, Finder } from '../app/commands.ts';
import { read, write } from '../app/preferences.ts';
import { Dialog } from '../parts/dialog.tsx';
import { isComposing } from '../parts/typing.ts';
import { Keys } from './key-sheet.tsx';

/** One line of the palette: a command, or a result of a finder. */
interface Line {
  readonly id: string;
  readonly group: string;
  readonly title: string;
  readonly detail?: string | undefined;
  readonly command?: Command;
  readonly run: () => void;
}

const recentKey = 'oratorio.recentCommands';
const maxRecent = 8;
const maxLines = 50;
/** Pause in typing before the palette sends a search to servers. */
const restMs = 120;

/** Dialog that finds every command and place by a few letters of its name. */
export function Palette({ app, onClose }: { readonly app: App; readonly onClose: () => void }) {
  const query = useSignal('');
  /** Id of the chosen line; null: the first. */
  const chosen = useSignal<string | null>(null);
  const isTaken = useSignal(false);
  const found = useFound(app, query.value);
  const list = useId();
  const lines = inOrder([...commandLines(app.commands.all.value, query.value), ...found.lines], query.value);
  const at = Math.min(
    Math.max(
      0,
      lines.findIndex(({ id }) => id === chosen.value),
    ),
    lines.length - 1,
  );

  const take = (line: Line | undefined) => {
    if (!line) return;
    if (line.command) remember(line.id);
    // The dialog gives the focus back first; then the command may move it.
    onClose();
    queueMicrotask(line.run);
  };
  const move = (by: number) => {
    if (lines.length === 0) return;
    const next = (at + by + lines.length) % lines.length;
    chosen.value = lines[next]?.id ?? null;
    document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: 'nearest' });
  };
  // Enter before the servers have answered takes their better line, instead of scattered letters of a command.
  const takeBest = () => {
    if (found.isComplete || chosen.value !== null || isNamed(query.value, lines[0])) take(lines[at]);
    else isTaken.value = true;
  };
  useEffect(() => {
    if (isTaken.value && found.isComplete) take(lines[at]);
  }, [isTaken.value, found.isComplete]);
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: takeBest,
  };
  return (
    <Dialog class="palette" label="Search and commands" onClose={onClose}>
      <input
        class="ask"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={at >= 0 ? `${list}-${at}` : undefined}
        aria-label="Search workspaces, conversations, actors and commands"
        placeholder="Search workspaces, conversations, actors, commands"
        spellcheck={false}
        value={query.value}
        onInput={(event) => {
          query.value = event.currentTarget.value;
          chosen.value = null;
          isTaken.value = false;
        }}
        onKeyDown={(event) => {
          const act = isComposing(event) ? undefined : keys[event.key];
          if (!act) return;
          event.preventDefault();
          act();
        }}
      />
      <div class="lines" id={list} role="listbox" aria-label="Found">
        {lines.map((line, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field has the focus and takes the keys
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <div
            key={line.id}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => take(line)}
          >
            <span class="quiet cut">{line.group}</span>
            <span class="title cut">
              {line.title} {line.detail !== undefined && <span class="quiet">{line.detail}</span>}
            </span>
            {line.command && <Keys command={line.command} />}
          </div>
        ))}
      </div>
      {lines.length === 0 && (
        <p class="none" role="status">
          No results
        </p>
      )}
    </Dialog>
  );
}

/** Rank of a line, best first: its title, then its other words, then results of servers, then scattered letters of a command. */
function rankOfLine(query: string, { title, detail = '', group, command }: Line): number {
  const rank = rankOf(query, title);
  if (rank < scattered) return rank;
  if (rankOf(query, `${title} ${detail} ${group}`) < scattered) return scattered;
  return command ? scattered + 2 : scattered + 1;
}

/** Whether the words of a line, or their beginnings, are in the query. */
const isNamed = (query: string, line: Line | undefined): boolean =>
  line !== undefined && rankOfLine(query, line) <= scattered;

/** Lines of all groups, best first. */
function inOrder(lines: readonly Line[], query: string): readonly Line[] {
  if (query.trim() === '') return lines.slice(0, maxLines);
  const ranked = lines.map((line) => ({ line, rank: rankOfLine(query, line) }));
  return ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, maxLines)
    .map(({ line }) => line);
}

/** Commands that fit, best first; without a query those used last come first. */
function commandLines(commands: readonly Command[], query: string): Line[] {
  const recent = recentIds();
  const rank = ({ id }: Command) => (recent.includes(id) ? recent.indexOf(id) : maxRecent);
  const scored = commands
    .filter((command) => command.isEnabled?.() !== false)
    .flatMap((command) => {
      const score = query === '' ? -rank(command) : fit(query, `${command.title} ${command.group}`);
      return score === null ? [] : [{ command, score }];
    });
  return scored.sort((a, b) => b.score - a.score).map(({ command }) => ({ ...pick(command), command }));
}

const pick = ({ id, group, title, run }: Command) => ({ id, group, title, run });

interface Found {
  readonly query: string;
  readonly lines: readonly Line[];
  /** Finders that have not answered yet. */
  readonly pending: number;
}

const nothing: Found = { query: '', lines: [], pending: 0 };

/** Results of the finders for a query, in the order of their answers. */
function useFound(app: App, query: string): { readonly lines: readonly Line[]; readonly isComplete: boolean } {
  const found = useSignal(nothing);
  useEffect(() => {
    const asked = query.trim();
    if (asked === '') {
      found.value = nothing;
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const finders = unlike(app.commands.finders.peek());
      if (finders.length === 0) found.value = { ...nothing, query: asked };
      for (const finder of finders) {
        void ask(finder, asked, abort.signal).then((lines) => {
          if (abort.signal.aborted) return;
          const before = found.peek().query === asked ? found.peek() : { lines: [], pending: finders.length };
          found.value = { query: asked, lines: [...before.lines, ...lines], pending: before.pending - 1 };
        });
      }
    }, restMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [app, query]);
  const asked = query.trim();
  const { lines, pending, query: answered } = found.value;
  return { lines: asked === '' ? [] : lines, isComplete: asked === '' || (answered === asked && pending === 0) };
}

const unlike = (finders: readonly Finder[]): readonly Finder[] => [
  ...new Map([...finders].reverse().map((finder) => [finder.id, finder])).values(),
];

async function ask(finder: Finder, query: string, signal: AbortSignal): Promise<Line[]> {
  try {
    const findings = await finder.find(query, signal);
    return findings.map((finding) => ({ ...finding, group: finder.group }));
  } catch {
    // A finder whose server does not answer finds nothing.
    return [];
  }
}

const recentIds = (): readonly string[] => (read(recentKey) ?? '').split(' ').filter((id) => id !== '');

function remember(id: string): void {
  write(recentKey, [id, ...recentIds().filter((each) => each !== id)].slice(0, maxRecent).join(' '));
}
