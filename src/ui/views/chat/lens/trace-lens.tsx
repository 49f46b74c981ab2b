import { useEffect, useRef } from 'preact/hooks';
import type { App } from '../../../app/app.ts';
import { href } from '../../../app/router.ts';
import { Empty, Skeleton } from '../../../parts/empty.tsx';
import type { Bodies } from '../../sessions/trace/bodies.ts';
import { traceCommands } from '../../sessions/trace/commands.ts';
import { Detail } from '../../sessions/trace/detail.tsx';
import { List } from '../../sessions/trace/list.tsx';
import type { Trace } from '../../sessions/trace/store.ts';
import { Waterfall } from '../../sessions/trace/waterfall.tsx';

/** Commands of the trace page that are disabled in a lens, because they would affect other parts of a conversation. */
const disabledCommands = /^trace\.(?:view\.|close$|pause$|filter$)/;

interface TraceLensProps {
  readonly app: App;
  readonly trace: Trace;
  readonly bodies: Bodies;
  readonly threadId: string;
}

/** Trace of a conversation, as a tree or as a list of all events. */
export function TraceLens({ app, trace, bodies, threadId }: TraceLensProps) {
  const part = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const focusList = () => part.current?.querySelector<HTMLElement>('.vlist')?.focus();
    return app.commands.register(
      traceCommands(trace, () => {}, focusList).filter(({ id }) => !disabledCommands.test(id)),
    );
  }, [app, trace]);
  const state = trace.state.value;
  if (state.is === 'missing') {
    return (
      <Empty title="There is no trace of this conversation">
        <p>Nothing was recorded yet, or its trace has been deleted.</p>
      </Empty>
    );
  }
  if (state.is === 'loading') return <Skeleton rows={14} />;
  return (
    <div class="trace in-lens" ref={part}>
      <p class="about quiet">
        {state.is === 'failed' && `${state.message} Retrying. `}
        <a href={href({ view: 'sessions', path: [threadId] })}>Filter, export and read the whole trace</a>
      </p>
      <div class={`trace-body ${trace.selectedId.value === undefined ? '' : 'with-detail'}`}>
        {trace.view.value === 'list' ? <List app={app} trace={trace} /> : <Waterfall app={app} trace={trace} />}
        <Detail app={app} trace={trace} bodies={bodies} />
      </div>
    </div>
  );
}
