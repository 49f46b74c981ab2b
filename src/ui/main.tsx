/**
 * The page of the Hub and of each agent server: who runs, in which state, what every session does, and what is to come.
 * One bundle; each view is fetched when it is first looked at. Never here: a request to any other origin, an inline style
 * or script, HTML made from data, a way to send an arbitrary event to an actor.
 */
import { render } from 'preact';
import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/shell.css';
import { createApp } from './app/app.ts';
import { Frame } from './shell/frame.tsx';

const root = document.getElementById('app');
if (root) {
  render(<Frame app={createApp()} />, root);
  // A link with a token that is pasted into this tab only changes the fragment: start over with it.
  addEventListener('hashchange', () => {
    if (location.hash.includes('token=')) location.reload();
  });
}
