import { hostPageShape, workspacePageShape } from '../../protocol/browser.ts';

/** Whether a path is that of the page of a Hub, or of a workspace on a Hub. */
const isOnHub = (path: string): boolean => path === '/' || workspacePageShape.test(path.replace(hostPageShape, ''));

/**
 * Opens the page of the present address, and in its place each further page of the same Hub without a load of the document. Browsers
 * without the Navigation API load the document.
 *
 * @param open opens the page; returns a function that closes it
 */
export function followPages(open: () => () => void): void {
  let close = open();
  if (!('navigation' in window)) return;
  navigation.addEventListener('navigate', (event) => {
    const { pathname } = new URL(event.destination.url);
    const isOther = pathname !== location.pathname && isOnHub(pathname) && isOnHub(location.pathname);
    if (!isOther || !event.canIntercept || event.navigationType === 'reload') return;
    // Unsaved changes: the browser asks, and loads the document.
    if (!dispatchEvent(new Event('beforeunload', { cancelable: true }))) return;
    // Drafts are stored under the path of the page, so it is closed before the address changes.
    dispatchEvent(new Event('pagehide'));
    close();
    event.intercept({
      handler: async () => {
        close = open();
      },
    });
  });
}
