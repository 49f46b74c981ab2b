import { useEffect } from 'preact/hooks';
import type { App } from '../../../app/app.ts';
import { cursorOf, type LensName, lensAt, lenses, lensNames } from './cursor.ts';

/** Id of the panel that the selected tab controls. */
export const lensId = 'lens';

interface TabsProps {
  readonly app: App;
  readonly threadId: string;
  readonly lens: LensName | null;
  readonly names: readonly LensName[];
}

/** Tabs of the lenses. A press on the selected tab closes the lens. */
export function LensTabs({ app, threadId, lens, names }: TabsProps) {
  const open = (name: LensName) => {
    const { query } = app.router.route.peek();
    app.router.go(lensAt(threadId, name === query['lens'] ? null : name, cursorOf(query)));
  };
  useEffect(
    () =>
      app.commands.register(
        lensNames.map((name) => ({
          ...{ id: `chat.lens.${name}`, title: `Show or hide the lens ${lenses[name].title}`, group: 'Conversation' },
          keys: [lenses[name].key],
          isEnabled: () => names.includes(name),
          run: () => open(name),
        })),
      ),
    [app, threadId, names.join()],
  );
  const move = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }) => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>('[role=tab]')];
    const at = tabs.findIndex((tab) => tab.matches(':focus'));
    tabs[(at + by + tabs.length) % tabs.length]?.focus();
  };
  return (
    <div class="lens-tabs" role="tablist" aria-label="Lens" onKeyDown={move}>
      {names.map((name, index) => {
        const isChosen = name === lens;
        const isFirst = lens === null || !names.includes(lens) ? index === 0 : isChosen;
        return (
          <button
            key={name}
            type="button"
            role="tab"
            aria-selected={isChosen}
            aria-controls={isChosen ? lensId : undefined}
            tabIndex={isFirst ? 0 : -1}
            title={`${lenses[name].title} (${lenses[name].key})`}
            onClick={() => open(name)}
          >
            {lenses[name].title}
          </button>
        );
      })}
    </div>
  );
}
