/**
 * The page of the Hub and of each agent server: its actors and their states, its sessions, and the next automations.
 * One bundle; each view is fetched when it is first opened. Never here: a request to any other origin, an inline style
 * or script, HTML made from data, a way to send an arbitrary event to an actor.
 */
import { render } from 'preact';
import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/shell.css';
import { type App, createApp } from './app/app.ts';
import { followPages } from './app/pages.ts';
import { showTextsVisibly } from './app/visible-texts.ts';
import { Frame } from './shell/frame.tsx';
import { fetchView } from './shell/outlet.tsx';

/** Longest wait for a first frame: a hidden tab draws none. */
const noFrameMs = 100;

/** Runs `run` after the browser has painted the initial document, so that the page is not blank while the work begins. */
function afterFirstPaint(run: () => void): void {
  const timer = setTimeout(begin, noFrameMs);
  const frame = requestAnimationFrame(() => setTimeout(begin));
  let hasBegun = false;
  function begin(): void {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    if (!hasBegun) run();
    hasBegun = true;
  }
}

/** Fetches the view during the request for the page info, after the server's proof: without a proof no view is shown. */
async function prefetch(app: App): Promise<void> {
  if ((await app.token()) !== null) await fetchView(app.router.route.peek().view);
}

/** Longest wait for the server before the page shows that it waits. */
const noAnswerMs = 150;

/** Runs `run` when the server has answered; until then, the document looks like the waiting page. */
function onceKnown({ entry }: App, run: () => void): void {
  const timer = setTimeout(begin, noAnswerMs);
  const stop = entry.subscribe((now) => now !== 'connecting' && begin());
  function begin(): void {
    clearTimeout(timer);
    queueMicrotask(() => stop());
    run();
  }
}

/** Opens the page of the present address. Returns a function that closes it, and leaves its last picture. */
function open(root: HTMLElement): () => void {
  const ended = new AbortController();
  const app = createApp(ended.signal);
  onceKnown(app, () => {
    if (ended.signal.aborted) return;
    // Removes the initial document or the last picture: Preact would keep and reuse its elements.
    root.replaceChildren();
    render(<Frame app={app} />, root);
  });
  prefetch(app).catch(() => {
    // The page asks again, and shows why.
  });
  return () => {
    const picture = root.cloneNode(true).childNodes;
    ended.abort();
    render(null, root);
    root.replaceChildren(...picture);
  };
}

function start(root: HTMLElement): void {
  showTextsVisibly();
  followPages(() => open(root));
  // A link with a token that is pasted into this tab only changes the fragment: start over with it.
  addEventListener('hashchange', () => {
    if (location.hash.includes('token=')) location.reload();
  });
}

const root = document.getElementById('app');
if (root) afterFirstPaint(() => start(root));
