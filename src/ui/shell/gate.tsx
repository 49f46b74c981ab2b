import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { messageOf } from '../../lib/browser.ts';
import { dashboardPaths } from '../../protocol/browser.ts';
import type { AuthMethods } from '../../protocol/index.ts';
import type { App } from '../app/app.ts';
import { CommandLine } from '../parts/copy.tsx';
import { Skeleton } from '../parts/empty.tsx';
import { Logo } from '../parts/icons.tsx';

/** Shown before the views: explains how to get a token, or why the page is waiting. */
export function Gate({ app }: { readonly app: App }) {
  const entry = app.entry.value;
  if (entry === 'refused') return <Refused app={app} />;
  if (entry === 'unreachable' || entry === 'foreign') return <Silent app={app} isForeign={entry === 'foreign'} />;
  return (
    <div class="frame">
      <header class="head">
        <Logo />
        <p class="where">
          <b>Oratorio</b>
        </p>
      </header>
      <main class="outlet">
        <Skeleton rows={4} />
      </main>
    </div>
  );
}

/** No server answers, or another program does. */
function Silent({ app, isForeign }: { readonly app: App; readonly isForeign: boolean }) {
  return (
    <main class="gate">
      <Logo />
      <h1>{isForeign ? 'The server did not prove itself' : 'The server does not answer'}</h1>
      <p role="alert">{app.trouble.value}</p>
      <p class="quiet">
        {isForeign && 'Do not enter a token or password here. '}This page tries again every second and opens by itself
        when its own server is back. List the processes of this machine:
      </p>
      <CommandLine text={app.server.gate.whenSilent} />
    </main>
  );
}

function Refused({ app }: { readonly app: App }) {
  const methods = useSignal<AuthMethods['methods']>([]);
  const { kind, base, gate } = app.server;
  useEffect(() => {
    document.title = 'Oratorio';
    if (kind !== 'workspace' || base !== '') return;
    const abort = new AbortController();
    app.api.get<AuthMethods>(dashboardPaths.auth, abort.signal).then(
      (answer) => {
        methods.value = answer.methods;
      },
      () => {
        // Without methods, the gate shows only the command for the terminal.
      },
    );
    return () => abort.abort();
  }, [app, kind, base]);
  return (
    <main class="gate">
      <Logo />
      <h1>This page needs a token</h1>
      {app.trouble.value !== null && <p role="alert">{app.trouble.value}</p>}
      <p>The token of this tab is missing or expired. {gate.hint}</p>
      <CommandLine text={gate.command} />
      {methods.value.includes('password') && <LogIn app={app} />}
      <TokenForm app={app} />
    </main>
  );
}

function TokenForm({ app }: { readonly app: App }) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const token = new FormData(event.currentTarget).get('token');
        if (typeof token === 'string' && token.trim() !== '') app.enter(token.trim());
      }}
    >
      <label>
        Token
        <input name="token" type="password" autocomplete="off" spellcheck={false} required />
      </label>
      <button type="submit">Enter</button>
    </form>
  );
}

function LogIn({ app }: { readonly app: App }) {
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const submit = async (form: FormData) => {
    isBusy.value = true;
    fault.value = null;
    try {
      await app.logIn(String(form.get('username') ?? ''), String(form.get('password') ?? ''));
    } catch (error) {
      fault.value = messageOf(error);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void submit(new FormData(event.currentTarget));
      }}
    >
      <label>
        User name
        <input name="username" autocomplete="username" required />
      </label>
      <label>
        Password
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      {fault.value !== null && (
        <p class="danger" role="alert">
          {fault.value}
        </p>
      )}
      <button type="submit" class="main" disabled={isBusy.value}>
        Log in
      </button>
    </form>
  );
}
