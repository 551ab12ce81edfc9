// hotcell.js - what no policy can say. Firefox adds what looks like an encrypted name to each hello, also where encrypted
// names are off; by the name it is decided where a sandbox may go, so such a hello is refused wherever there are rules.
pref("security.tls.ech.grease_probability", 0, locked);
pref("security.tls.ech.grease_http3", false, locked);
