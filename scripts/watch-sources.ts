/** Reports which sources of the checkout change. */
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { join, sep } from 'node:path';
import { root } from './toolchain.mjs';

/** Editors write a file in several steps, and a change of branch changes many files. */
const quietMs = 100;

export interface SourceWatcher {
  close(): void;
}

/**
 * Watches directories of the checkout with all that is below them; a missing one is left out.
 *
 * @param directories relative to the root
 * @param onChange gets the files that changed, relative to the root, once no other has changed for 100 ms
 */
export function watchSources(
  directories: readonly string[],
  onChange: (files: ReadonlySet<string>) => void,
): SourceWatcher {
  let changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  function report(): void {
    const files = changed;
    changed = new Set();
    onChange(files);
  }

  function note(directory: string, name: string | null): void {
    if (name === null || isTemporary(name)) return;
    changed.add([directory, ...name.split(sep)].join('/'));
    clearTimeout(timer);
    timer = setTimeout(report, quietMs);
  }

  const watchers: FSWatcher[] = directories
    .filter((directory) => existsSync(join(root, directory)))
    .map((directory) => watch(join(root, directory), { recursive: true }, (_event, name) => note(directory, name)));
  return {
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}

/** Files that editors write beside the one they save. */
const isTemporary = (name: string): boolean => /(?:~|\.sw[a-z]|\.tmp|\.\d+)$|(?:^|[\\/])(?:\.#|4913$)/.test(name);
