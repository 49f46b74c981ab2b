import { useState } from 'preact/hooks';

/** Pictures that may be shown: in the message itself, and of a kind without a program in it. */
const shownAddress = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

/** A picture that a person has sent. One of another address is not fetched: its server would learn of it. */
export function Picture({ url }: { readonly url: string }) {
  const [isBroken, setBroken] = useState(!shownAddress.test(url));
  if (isBroken) return <p class="quiet">Picture (it cannot be shown)</p>;
  return <img class="picture" src={url} alt="Sent" onError={() => setBroken(true)} />;
}
