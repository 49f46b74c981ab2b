import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { App } from '../../../app/app.ts';
import { Empty, Skeleton } from '../../../parts/empty.tsx';
import { Banner } from '../../../parts/state-banner.tsx';
import { amount, titleOf } from '../words.ts';
import { Announcer } from './announcer.tsx';
import { createBodies } from './bodies.ts';
import { traceCommands } from './commands.ts';
import { Detail } from './detail.tsx';
import { Header } from './header.tsx';
import { List } from './list.tsx';
import { Log } from './log.tsx';
import { createTrace, type Trace } from './store.ts';
import { Toolbar } from './toolbar.tsx';
import './bars.css';
import './reading.css';
import './trace.css';
import { Waterfall } from './waterfall.tsx';

/** One session, from its first event to the current one. */
export function TracePage({ app, sessionKey }: { readonly app: App; readonly sessionKey: string }) {
  const trace = useMemo(() => createTrace(app, sessionKey), [app, sessionKey]);
  const bodies = useMemo(() => createBodies(app, sessionKey), [app, sessionKey]);
  const box = useRef<HTMLInputElement>(null);
  const page = useRef<HTMLDivElement>(null);
  useEffect(() => trace.start(), [trace]);
  useLayoutEffect(() => {
    const focusList = () => page.current?.querySelector<HTMLElement>('.vlist')?.focus();
    return app.commands.register(traceCommands(trace, () => box.current?.focus(), focusList));
  }, [trace]);
  const session = trace.session.value;
  const title = session && titleOf(session);
  useEffect(() => {
    app.subject.value = title ?? sessionKey;
    return () => {
      app.subject.value = null;
    };
  }, [title, sessionKey]);

  const state = trace.state.value;
  if (state.is === 'missing') return <Missing sessionKey={sessionKey} />;
  const View = { waterfall: Waterfall, log: Log, list: List }[trace.view.value];
  return (
    <div class="view trace" ref={page}>
      <Header app={app} trace={trace} />
      <Toolbar trace={trace} box={box} />
      <Banners trace={trace} />
      <Announcer trace={trace} />
      <div class={`trace-body ${trace.selectedId.value === undefined ? '' : 'with-detail'}`}>
        {state.is === 'loading' ? <Skeleton rows={14} /> : <View app={app} trace={trace} bodies={bodies} />}
        <Detail app={app} trace={trace} bodies={bodies} />
      </div>
    </div>
  );
}

function Missing({ sessionKey }: { readonly sessionKey: string }) {
  return (
    <Empty title="There is no trace of this conversation">
      <p>
        <code>{sessionKey}</code> was never recorded, or its trace has been deleted. The conversation itself may still
        be there: traces are stored separately.
      </p>
      <a class="button" href="#/sessions">
        All traces
      </a>
    </Empty>
  );
}

function Banners({ trace }: { readonly trace: Trace }) {
  const state = trace.state.value;
  const { before, after } = trace.omits.value;
  const shown = amount(trace.model.value.entries.length);
  return (
    <>
      {state.is === 'failed' && (
        <Banner tone="danger">
          <p>{state.message} It is tried again. What is shown stays.</p>
        </Banner>
      )}
      {state.is === 'deleted' && (
        <Banner tone="warn">
          <p>This trace has just been deleted. This page holds the only copy.</p>
        </Banner>
      )}
      {after && (
        <Banner tone="neutral">
          <p>
            The first {shown} events are shown, of {amount(trace.session.value?.eventCount ?? 0)}.
          </p>
          <button type="button" onClick={() => trace.more()}>
            Continue from here
          </button>
          <button type="button" onClick={() => trace.toEnd()}>
            Newest events
          </button>
        </Banner>
      )}
      {before && !after && (
        <Banner tone="neutral">
          <p>The newest {shown} events are shown; older ones were let go to stay quick. An export has them all.</p>
        </Banner>
      )}
    </>
  );
}
