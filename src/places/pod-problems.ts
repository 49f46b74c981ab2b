import { EngineRefusal, EngineUnreachableError } from './engine-api.ts';
import { PlaceError, type PlaceProblem } from './place.ts';

/** A retry may help. */
export const unavailable = (message: string) => new PlaceError({ kind: 'placeUnavailable', message });

export const rootRefused: PlaceProblem = {
  kind: 'placeRefused',
  message:
    'A Hub that runs as root does not start pods, because they run as its user. Set Place.Pod.AllowRoot to allow it.',
};

export const noImage: PlaceProblem = {
  kind: 'imageMissing',
  message: 'No image is set. Name an image that contains Oratorio with --image or in Place.Pod.Image.',
};

export const imageMissing = (image: string, words: string): PlaceProblem => ({
  kind: 'imageMissing',
  message: `The node of the pod cannot use the image ${image}: ${words}. Load it on the nodes, or set Place.Pod.PullImages, then start again.`,
});

/** Converts an error to the problem of a place, with reason and next step. */
export function problemOf(error: unknown): PlaceProblem {
  if (error instanceof PlaceError) return error;
  if (error instanceof EngineUnreachableError)
    return { kind: 'placeUnavailable', message: `${error.message}. Check the cluster, then try again.` };
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof EngineRefusal) {
    if (error.status === 401)
      return {
        kind: 'placeRefused',
        message: `The cluster does not accept the credentials: ${message}. Log in again, then start again.`,
      };
    if (error.status === 403)
      return {
        kind: 'placeRefused',
        message: `The cluster denies a request: ${message}. Oratorio needs pods, pods/attach, pods/portforward and leases in the namespace.`,
      };
    if (error.status === 422 || error.status === 400)
      return {
        kind: 'placeRefused',
        message: `The cluster does not accept the pod: ${message}. Correct Place.Pod, then start again.`,
      };
    return {
      kind: 'placeUnavailable',
      message: `The cluster refuses the request: ${message}. Check the cluster, then start again.`,
    };
  }
  if (code === 'EADDRINUSE')
    return {
      kind: 'placeUnavailable',
      message: 'Another program uses a port of the agent server. Start again: the next start chooses other ports.',
    };
  return { kind: 'placeUnavailable', message: `The pod could not be started: ${message}` };
}
