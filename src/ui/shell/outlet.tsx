import { Component, type ComponentChildren, type ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { App } from '../app/app.ts';
import type { ViewName } from '../app/server.ts';
import { Empty, Skeleton } from '../parts/empty.tsx';
import { views } from './views.ts';

interface Fetched {
  readonly View: ComponentType<{ readonly app: App }>;
}

const fetched = new Map<ViewName, Fetched>();

/** Fetches a view, which then opens without a pause. Rejects when it cannot be fetched. */
export async function fetchView(view: ViewName): Promise<Fetched> {
  const part = { View: (await views[view].load()).default };
  fetched.set(view, part);
  return part;
}

/** One view, fetched when it is first opened. When it fails, the rest of the page continues. */
export function Outlet({
  app,
  view,
  isThere,
}: {
  readonly app: App;
  readonly view: ViewName;
  readonly isThere: boolean;
}) {
  const [loaded, setLoaded] = useState(fetched.get(view) ?? null);
  const [hasFailed, setHasFailed] = useState(false);
  useEffect(() => {
    if (!isThere || loaded) return;
    let isCurrent = true;
    fetchView(view).then(
      (part) => isCurrent && setLoaded(part),
      () => isCurrent && setHasFailed(true),
    );
    return () => {
      isCurrent = false;
    };
  }, [view, isThere]);
  if (!isThere) return <NotHere app={app} view={view} />;
  if (hasFailed) {
    return (
      <Fault title="This view could not be fetched">
        The server was updated, or cannot be reached just now: reload the page.
      </Fault>
    );
  }
  if (!loaded) return <Skeleton />;
  return (
    <Boundary>
      <loaded.View app={app} />
    </Boundary>
  );
}

function NotHere({ app, view }: { readonly app: App; readonly view: ViewName }) {
  const isHub = app.page.value?.kind === 'hub';
  return (
    <Empty
      title={`${views[view].title}: not on this page`}
      {...(isHub && { command: 'oratorio inspect <workspace> --open' })}
    >
      <p>
        {isHub ? 'This belongs to one workspace. Open the page of that workspace:' : 'This server has nothing of it.'}
      </p>
    </Empty>
  );
}

class Boundary extends Component<{ readonly children: ComponentChildren }, { readonly error: Error | null }> {
  override state = { error: null as Error | null };

  static override getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidCatch(error: unknown): void {
    console.error(error);
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Fault title="This view has failed" again={() => this.setState({ error: null })}>
        {error.message}
      </Fault>
    );
  }
}

function Fault({
  title,
  again,
  children,
}: {
  readonly title: string;
  readonly again?: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <div role="alert">
      <Empty title={title}>
        <p>{children}</p>
        <button type="button" onClick={again ?? (() => location.reload())}>
          {again ? 'Show it again' : 'Reload'}
        </button>
      </Empty>
    </div>
  );
}
