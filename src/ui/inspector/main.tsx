/** Page of the inspector package: the actors of one program. Never here: a request to another origin, an event to an actor. */
import { useSignal } from '@preact/signals';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import '../styles/tokens.css';
import '../styles/base.css';
import '../styles/parts.css';
import '../styles/shell.css';
import './inspector.css';
import type { App } from '../app/app.ts';
import { showTextsVisibly } from '../app/visible-texts.ts';
import { Empty } from '../parts/empty.tsx';
import { Header } from '../shell/header.tsx';
import { KeySheet } from '../shell/key-sheet.tsx';
import { useKeys } from '../shell/keys.ts';
import { type Overlay, pageCommands } from '../shell/page-commands.ts';
import { Palette } from '../shell/palette.tsx';
import { Toasts } from '../shell/toasts.tsx';
import { ActorsPage } from '../views/actors/page.tsx';
import type { CreateSource } from '../views/actors/source.ts';
import { createProgramApp } from './app.ts';
import { createProgramLive } from './live.ts';
import { ProgramMachines } from './source.ts';
import { takeTransport } from './transport.ts';

interface FrameProps {
  readonly app: App;
  readonly createSource: CreateSource;
}

function Frame({ app, createSource }: FrameProps) {
  const overlay = useSignal<Overlay>('none');
  const page = app.page.value;
  const subject = app.subject.value;
  useKeys(app);
  useEffect(() => app.commands.register(pageCommands(app, overlay)), [app, overlay]);
  useEffect(() => {
    document.title = [subject, 'Inspector'].filter((part) => part !== null).join(' · ');
  }, [subject]);
  const close = () => {
    overlay.value = 'none';
  };
  return (
    <div class="frame">
      {page && <Header app={app} page={page} overlay={overlay} />}
      <main class="outlet" aria-label="Actors">
        {app.live.connections.inspect.value.state === 'refused' ? (
          <NoProgram />
        ) : (
          <ActorsPage app={app} createSource={createSource} />
        )}
      </main>
      {overlay.value === 'palette' && <Palette app={app} onClose={close} />}
      {overlay.value === 'keys' && <KeySheet app={app} onClose={close} />}
      <Toasts app={app} />
    </div>
  );
}

function NoProgram() {
  return (
    <Empty title="No program">
      <h1 class="unseen">Inspector</h1>
      <p>Open the address in `inspector.url` of the running program.</p>
    </Empty>
  );
}

function start(root: HTMLElement): void {
  showTextsVisibly();
  const transport = takeTransport();
  if (!transport) {
    render(<NoProgram />, root);
    return;
  }
  const machines = new ProgramMachines();
  const live = createProgramLive(transport, (json) => machines.add(json));
  render(<Frame app={createProgramApp(live)} createSource={machines.source(transport)} />, root);
  // A pasted address with another token changes only the fragment, so the browser does not reload the page.
  addEventListener('hashchange', () => {
    if (/[#&](?:token|channel)=/.test(location.hash)) location.reload();
  });
}

const root = document.getElementById('app');
if (root) start(root);
