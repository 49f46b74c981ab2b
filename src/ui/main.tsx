/**
 * The inspector page: which actors there are, where each is in its chart, and how it got there. It is served by the
 * Hub, reads `GET /v1/machines` once and `GET /v1/inspect` for ever, and asks the Hub's own API for restart, stop and
 * start. Never here: a request to any other origin, an inline style or script, a way to send an arbitrary event.
 */
import { render } from 'preact';
import './theme.css';
import { createStore } from './state/store.ts';
import { takeToken } from './token.ts';
import { App } from './views/app.tsx';
import { NoToken } from './views/pages.tsx';

const root = document.getElementById('app');
if (root) {
  const token = takeToken();
  if (token === null) {
    render(<NoToken reason="This page was opened without its token." />, root);
  } else {
    const store = createStore(token);
    store.start(new AbortController().signal);
    render(<App store={store} />, root);
  }
  // A link with a token that is pasted into this tab only changes the fragment: start over with it.
  addEventListener('hashchange', () => {
    if (location.hash.includes('token=')) location.reload();
  });
}
