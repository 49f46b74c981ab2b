import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { App } from '../app/app.ts';
import type { Resource } from '../app/resource.ts';
import { Skeleton } from './empty.tsx';
import { FilterBar, type FilterBarProps } from './filter-bar.tsx';
import { FaultBanner } from './state-banner.tsx';

/** State of the request for the rows. */
export interface ListState extends Pick<Resource<unknown>, 'error'>, Partial<Pick<Resource<unknown>, 'at' | 'reload'>> {
  readonly isLoaded: boolean;
}

export interface ListViewProps {
  readonly app: App;
  /** CSS classes of the view. The first one is the prefix of its command id. */
  readonly class: string;
  readonly title: string;
  /** Text box, which the key `/` focuses. */
  readonly filter?: FilterBarProps;
  /** Request for the rows. Absent: the rows need no request. */
  readonly state?: ListState;
  /** Number of placeholder rows. */
  readonly placeholderRows?: number;
  /** Content between the title and the text box. */
  readonly lead?: ComponentChildren;
  /** Content after the text box. */
  readonly tools?: ComponentChildren;
  /** Banners between the strip and the rows, also shown before the rows are loaded. */
  readonly notices?: ComponentChildren;
  /** Rows, or the text of an empty list. */
  readonly children: ComponentChildren;
  /** Open dialog. */
  readonly dialog?: ComponentChildren;
}

/** View of a list: title, filter, buttons, errors of the request, and the rows once they are loaded. */
export function ListView({ app, title, filter, state, placeholderRows = 8, ...view }: ListViewProps) {
  const box = useFilterKey(app, view.class, title, filter?.label);
  return (
    <div class={`view ${view.class}`}>
      <div class="strip">
        <h1>{title}</h1>
        {view.lead}
        {filter && <FilterBar {...filter} box={box} />}
        {view.tools}
      </div>
      {state && (
        <FaultBanner
          error={state.error.value}
          at={state.at?.value ?? null}
          {...(state.reload && { retry: state.reload })}
        />
      )}
      {view.notices}
      {state && !state.isLoaded ? state.error.value === null && <Skeleton rows={placeholderRows} /> : view.children}
      {view.dialog}
    </div>
  );
}

/** Command that focuses the text box. */
function useFilterKey(app: App, name: string, group: string, label: string | undefined) {
  const box = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (label === undefined) return;
    const run = () => box.current?.focus();
    return app.commands.register([{ id: `${name.split(' ')[0]}.filter`, title: label, group, keys: ['/'], run }]);
  }, [app, name, group, label]);
  return box;
}
