// Shows the notices of the Hub. Never here: a fetch handler or a cache. The page always comes from the server.
const plain = { title: 'Oratorio', body: 'A workspace waits for an answer.', id: 'oratorio', path: '/#/inbox' };

/** Without a text the browser would show one of its own. */
function messageOf(data) {
  try {
    const { title, body, id, path } = data.json();
    const isWhole = [title, body, id, path].every((each) => typeof each === 'string');
    return isWhole && path.startsWith('/#/inbox/') ? { title, body, id, path } : plain;
  } catch {
    return plain;
  }
}

/** Shows the request in a page of the Hub that is open, or opens one. A page without a token gets it from another tab, or asks. */
async function open(path) {
  const windows = await clients.matchAll({ type: 'window', includeUncontrolled: true });
  const page = windows.find(({ url }) => new URL(url).pathname === '/');
  if (!page) return clients.openWindow(path);
  page.postMessage({ type: 'oratorio.open', hash: path.slice(1) });
  return page.focus();
}

addEventListener('install', () => skipWaiting());
addEventListener('push', (event) => {
  const { title, body, id, path } = messageOf(event.data);
  event.waitUntil(registration.showNotification(title, { body, tag: id, data: path }));
});
addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data ?? plain.path));
});
