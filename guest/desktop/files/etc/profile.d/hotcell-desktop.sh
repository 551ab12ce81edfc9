# hotcell-desktop.sh - programs with windows: no bus for assistive technology, which nobody listens to
export NO_AT_BRIDGE=1 GTK_A11Y=none GDK_BACKEND=x11 MOZ_DISABLE_AUTO_SAFE_MODE=1
# the bus of the session, for what is started beside it
[ ! -O /dev/shm/hotcell-bus ] || export DBUS_SESSION_BUS_ADDRESS=unix:path=/dev/shm/hotcell-bus
