import { useLayoutEffect, useRef } from 'preact/hooks';
import type { App } from '../../app/app.ts';
import type { Command } from '../../app/commands.ts';

/**
 * Offers commands while the component is mounted. Effects of commands may change with each render; the list of commands, their
 * titles and their keys may not.
 */
export function useCommands(app: App, commands: readonly Command[]): void {
  const latest = useRef(commands);
  latest.current = commands;
  useLayoutEffect(
    () =>
      app.commands.register(
        latest.current.map((command, index) => ({
          ...command,
          isEnabled: () => latest.current[index]?.isEnabled?.() ?? true,
          run: () => latest.current[index]?.run(),
        })),
      ),
    [app],
  );
}
